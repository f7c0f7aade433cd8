// Drives one client for a server of `sm`: carries out single orders of the server, and gives the agent its handoff tool.
//
// It decides nothing. Every order has an id and is acknowledged with its result; an order that was given twice is
// carried out once. Without a server (no SM_SOCKET, or no answer) it does nothing and delays nothing: what a turn waits
// for never waits for the server, except the handoff tool, whose answer is the server's.
//
// Facts about the client (2.1.290 to 2.1.332): a request that takes over 30 s is given up; a hook has 10 s of its own,
// which `$` calls do not count towards; `command.run` works from timers only and rejects after the user's own Stop.
import type { EngineInterface, Register } from 'claude-code'

const HOLD_S = 25
/** Between two looks at the context while a turn runs; the client counts it anew after each response. */
const LOOK_INTERVAL_MS = 400
/** A server that hangs does not hold up a context that begins: the part in the hook's reply then serves. */
const DOCUMENT_TIMEOUT_MS = 2_000
const MIN_RETRY_MS = 100
const MAX_RETRY_MS = 2_000

const HANDOFF_TOOL = {
  name: 'handoff',
  description:
    'Hand your work over to a fresh context of yourself, when a notice of sm says that your context fills up or the ' +
    'user asks for it. Call it as the last action of your turn, then end the turn: the context is cleared, and the ' +
    'next one begins with your document, which is all that it will know.',
  isDeferred: false,
  inputSchema: {
    type: 'object',
    properties: {
      document: {
        type: 'string',
        description:
          'Markdown: the goal, what is done, what is not, decisions and constraints with their reasons, files changed, ' +
          'and the exact next step.',
      },
    },
    required: ['document'],
    additionalProperties: false,
  },
}
const TAKEN = 'Handoff scheduled — will execute after current turn completes. End your turn now.'
const NO_ANSWER = 'The server of sm does not answer, so nothing was handed off. Write the document to a file and tell the user.'

type Fields = Record<string, unknown>
type Order = { id: number; kind: string; text?: string; as_user?: boolean }
type Answer = { orders?: Order[]; document?: { whole: string; part: string }; refused?: string }
type Link = { socketPath: string; url: string; token: string }

/** Made anew when the module is loaded again: the server then knows that orders in hand were lost. */
const generation = crypto.randomUUID()
let link: Link | undefined
let isPolling = false
let isRotating = false
/** Of orders that were carried out: given again, each is only acknowledged again. */
const results = new Map<number, Fields>()
/** Of orders, until the server has taken them. */
let acknowledged: Fields[] = []
let looking: { cancel: () => void } | undefined
/** Of the last request whose size was reported. */
let tokens: number | undefined

export const register: Register = on => {
  on('session.start', async ($, e, next) => {
    const started = await next(e)
    link = await found($)
    if (link !== undefined) {
      $.clock.after(1, () => inBackground(poll($)))
      await $.tool.register(HANDOFF_TOOL)
    }
    return started
  })

  on('classic.SessionStart', async ($, e, next) => {
    const below = await next(e)
    if (e.source === 'startup') return below
    const answer = await Promise.race([exchange($, { started: true }), $.clock.sleep(DOCUMENT_TIMEOUT_MS)])
    const document = answer?.document
    if (document === undefined) return below
    const others = (below.additionalContext ?? []).filter(text => text !== document.part)
    return { ...below, additionalContext: [...others, document.whole] }
  }).catch(($, e, next) => next(e))

  on('turn.start', async ($, e, next) => {
    if (link !== undefined && e.agentId === undefined) {
      tokens = undefined
      looking ??= $.clock.every(LOOK_INTERVAL_MS, () => inBackground(look($)))
    }
    return next(e)
  })

  on('turn.complete', async ($, e, next) => {
    if (e.agentId === undefined) {
      looking?.cancel()
      looking = undefined
    }
    return next(e)
  })

  on('tool.call', { tool: 'mcp__sm__handoff' }, async ($, e) => {
    if (e.agentId !== undefined) return { deny: 'Only the main agent hands off; report to it instead.' }
    const answer = await exchange($, { handoff: e.document })
    if (answer === undefined) return { deny: NO_ANSWER }
    return answer.refused === undefined ? { result: TAKEN } : { deny: answer.refused }
  }).catch(() => ({ deny: NO_ANSWER }))
}

/** The server's socket, by the environment that a session of `sm` starts its client with. */
async function found($: EngineInterface): Promise<Link | undefined> {
  const socket = await $.env.get('SM_SOCKET')
  const session = await $.env.get('CLAUDE_SESSION_MANAGER_ID')
  const token = await $.env.get('SM_SESSION_TOKEN')
  if (!socket?.startsWith('unix:') || !session || !token) return undefined
  return { socketPath: socket.slice('unix:'.length), url: `http://localhost/sessions/${session}/link`, token }
}

/** Undefined if the server does not answer; its refusal in words if it does not take it. */
async function exchange($: EngineInterface, body: Fields): Promise<Answer | undefined> {
  if (link === undefined) return undefined
  try {
    const response = await $.http.fetch(link.url, {
      method: 'POST',
      headers: { 'content-type': 'application/json', authorization: `Bearer ${link.token}` },
      body: JSON.stringify({ generation, ...body }),
      socketPath: link.socketPath,
    })
    if (response.ok) return JSON.parse(response.text) as Answer
    const refused = JSON.parse(response.text) as { error: string; hint?: string }
    return { refused: refused.hint ? `${refused.error}: ${refused.hint}` : refused.error }
  } catch {
    return undefined
  }
}

async function poll($: EngineInterface): Promise<void> {
  if (isPolling) return
  isPolling = true
  for (let wait = MIN_RETRY_MS; ; ) {
    const answer = await acknowledge($, { hold: HOLD_S })
    if (answer === undefined || answer.refused !== undefined) {
      await $.clock.sleep(wait)
      wait = Math.min(2 * wait, MAX_RETRY_MS)
      continue
    }
    wait = MIN_RETRY_MS
    for (const order of answer.orders ?? []) inBackground(carryOut($, order))
  }
}

/** Send the results that the server does not have yet; they are kept for the next time where it does not answer. */
async function acknowledge($: EngineInterface, body: Fields = {}): Promise<Answer | undefined> {
  const done = acknowledged
  acknowledged = []
  const answer = await exchange($, { ...body, done })
  if (answer === undefined) acknowledged = [...done, ...acknowledged]
  return answer
}

/** What is under way when the client unloads the module is rejected, and nobody is left to care. */
function inBackground(work: Promise<unknown>): void {
  work.catch(() => undefined)
}

async function carryOut($: EngineInterface, order: Order): Promise<void> {
  let result = results.get(order.id)
  if (result === undefined) {
    results.set(order.id, { id: order.id, is_running: true })
    try {
      result = { id: order.id, ...(await run($, order)) }
    } catch (problem) {
      result = { id: order.id, problem: problem instanceof Error ? problem.message : String(problem) }
    }
    results.set(order.id, result)
  }
  if (result.is_running === true) return
  acknowledged.push(result)
  await acknowledge($)
}

async function run($: EngineInterface, order: Order): Promise<Fields> {
  switch (order.kind) {
    case 'rotate':
      return rotate($, order)
    case 'prompt':
      return submit($, order)
    case 'tell':
      return tell($, order.text ?? '')
  }
  throw new Error(`unknown order ${order.kind}`)
}

/** Clear the context, and with a text wake the agent in the new one. */
async function rotate($: EngineInterface, order: Order): Promise<Fields> {
  if (isRotating) throw new Error('a rotation is under way')
  isRotating = true
  try {
    const before = await $.session.id()
    await $.command.run({ command: 'clear' })
    const conversation = await $.session.id()
    if (conversation === before) throw new Error('the context was not cleared')
    return { before, conversation, ...(order.text ? await submit($, order) : {}) }
  } finally {
    isRotating = false
  }
}

async function submit($: EngineInterface, order: Order): Promise<Fields> {
  const submitted = await $.prompt.submit({ text: order.text ?? '', ...(order.as_user ? { asUser: true as const } : {}) })
  return submitted.drop === undefined ? {} : { dropped: submitted.drop }
}

/** With the next request, in a frame of our own: 2.1.300 adds none, and newer clients do not double it. */
async function tell($: EngineInterface, text: string): Promise<Fields> {
  const framed = `<system-reminder>\n${text}\n</system-reminder>`
  const row = await $.session.append({ message: { type: 'user', content: [{ type: 'text', text: framed }] } })
  return row.deny === undefined ? {} : { problem: row.deny }
}

/** Report how full the context is, once for each response. */
async function look($: EngineInterface): Promise<void> {
  const { context } = await $.session.usage()
  if (context.tokens === undefined || context.tokens === tokens) return
  tokens = context.tokens
  const conversation = await $.session.id()
  await exchange($, { context: { conversation, tokens, window: context.window } })
}
