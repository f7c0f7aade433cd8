// Drives one client for a server of `sm`: carries out single orders of the server, and gives the agent its handoff tool.
//
// It decides nothing. Every order has an id and is acknowledged with its result; an order that was given twice is
// carried out once. In a session of `sm` without a server it does nothing and delays nothing: what a turn waits for never
// waits for the server, except the handoff tool, whose answer is the server's.
//
// A client that the user starts themselves is their own session. There the module also reports what the hooks of a
// session of `sm` report, asks the user before their context is cleared, and serves by itself where no server answers.
//
// Facts about the client (2.1.290 to 2.1.332): a request that takes over 30 s is given up; a hook has 10 s of its own,
// which `$` calls do not count towards; `command.run` works from timers only and rejects after the user's own Stop.
import type { EngineInterface, Register, SessionUsage } from 'claude-code'
import { DECLINED, NO, QUESTION, WAKE, YES, compacted, loaded, notice } from './alone'

const HOLD_S = 25
/** Between two looks at the context while a turn runs; the client counts it anew after each response. */
const LOOK_INTERVAL_MS = 200
/** A server that hangs does not hold up a context that begins: the part in the hook's reply then serves. */
const PATIENT_TIMEOUT_MS = 2_000
/** Characters of a model's answer: what the server takes in one request, and more than it asks for. */
const MAX_ANSWER = 100_000
/** In a context's first turn there is nothing to fork while none of its requests is out (2.1.328): ten seconds. */
const MAX_FORK_TRIES = 25
const MIN_RETRY_MS = 100
const MAX_RETRY_MS = 2_000
/** What any other hook of the user's own session waits for the server. */
const HOOK_TIMEOUT_MS = 1_000
/** Between two tries while no server answers; the waits count towards the hook's own 10 s. */
const ASK_RETRY_MS = 500
const MAX_ASK_RETRIES = 16
/** A server that answers sooner, and with nothing, is about to stop. */
const MIN_HOLD_MS = 1_000
/** Polls in a row that a server of the user's own session may leave without an answer: a minute; at first, a second. */
const MAX_MISSES = 30
const MAX_FIRST_MISSES = 3
/** What a server says that will not have this client, or is an older one. */
const STRANGE = ['no_session', 'not_client', 'unauthorized', 'no_route']

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
type Decision = { behavior: 'allow' } | { behavior: 'deny'; message?: string }
type Reply = {
  hookSpecificOutput?: { additionalContext?: string; decision?: Decision }
  decision?: string
  reason?: string
}
type Answer = {
  orders?: Order[]
  document?: { whole: string; part: string }
  reply?: Reply
  rotate?: string
  over?: boolean
  refused?: string
  code?: string
}
/** Without a token the server knows the client by its process. */
type Link = { socketPath: string; url: string; token?: string }

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
/** Whether a server has taken that. */
let isHeard = true
/** What was last reported of the account's usage limits. */
let shares = ''

/** What the client has asked its user so far. */
let askCount = 0

/** The user started this client themselves. */
let isOwn = false
/** What a hook of the client has told last: by it a server that has just started knows this client. */
let seen: object | undefined
/** Whether the user is to be asked before their context is cleared, and what they have answered. */
let asks = true
let isAllowed: boolean | undefined
/** They have typed /sm:handoff last. */
let isWanted = false
/** The document of a handoff that no server has, and what the user has said since. */
let document: string | undefined
let said: string[] = []

export const register: Register = on => {
  on('session.start', async ($, e, next) => {
    const started = await next(e)
    link = await found($, e.isInteractive)
    if (link !== undefined) {
      await $.tool.register(HANDOFF_TOOL)
      $.clock.after(1, () => inBackground(poll($)))
    }
    return started
  })

  on('classic.SessionStart', async ($, e, next) => {
    const answer = await heard($, e, { started: true }, PATIENT_TIMEOUT_MS)
    const below = await next(e)
    return { ...below, additionalContext: await opening($, e.source, below.additionalContext ?? [], answer) }
  }).catch(($, e, next) => next(e))

  on('classic.UserPromptSubmit', async ($, e, next) => {
    const context = contextOf(await heard($, e))
    const below = await next(e)
    return context === undefined ? below : { ...below, additionalContext: [...(below.additionalContext ?? []), context] }
  }).catch(($, e, next) => next(e))

  on('classic.Stop', async ($, e, next) => {
    const context = contextOf(await heard($, e))
    const below = await next(e)
    return context === undefined ? below : { ...below, additionalContext: [...(below.additionalContext ?? []), context] }
  }).catch(($, e, next) => next(e))

  on('classic.PreCompact', async ($, e, next) => {
    const reply = (await heard($, e, {}, PATIENT_TIMEOUT_MS))?.reply
    return reply?.decision === 'block' ? { block: reply.reason ?? '' } : next(e)
  }).catch(($, e, next) => next(e))

  on('classic.PostCompact', async ($, e, next) => {
    if (e.agent_id === undefined) compacted()
    await heard($, e)
    return next(e)
  }).catch(($, e, next) => next(e))

  on('classic.PermissionRequest', async ($, e, next) => {
    const below = await next(e)
    if (below.decision !== undefined) return below
    const decision = await answered($, e, next.signal)
    return decision === undefined ? below : { ...below, decision }
  }).catch(($, e, next) => next(e))

  on('prompt.submit', async ($, e, next) => {
    if (isOwn && e.origin.kind === 'composer') {
      isWanted = e.text.startsWith('/sm:handoff') || (isWanted && e.turnId !== undefined)
      if (document !== undefined) said.push(e.text)
    }
    return next(e)
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
      if (looking !== undefined) $.clock.after(1, () => inBackground(look($))) // of the turn's last response
      looking?.cancel()
      looking = undefined
      if (document !== undefined) $.clock.after(1, () => inBackground(rotateAlone($)))
    }
    return next(e)
  })

  on('tool.call', { tool: 'mcp__sm__handoff' }, async ($, e) => {
    if (e.agentId !== undefined) return { deny: 'Only the main agent hands off; report to it instead.' }
    if (isOwn && !(await mayRotate($))) {
      $.clock.after(1, () => inBackground(exchange($, { declined: true })))
      return { deny: DECLINED }
    }
    const answer = await exchange($, { handoff: e.document })
    if (answer !== undefined) return answer.refused === undefined ? { result: TAKEN } : { deny: answer.refused }
    if (!isOwn) return { deny: NO_ANSWER }
    document = String(e.document)
    said = []
    return { result: TAKEN }
  }).catch(() => ({ deny: NO_ANSWER }))
}

/** The server's socket: by the environment of a session of `sm`, or where the server of the user has it. */
async function found($: EngineInterface, isInteractive: boolean): Promise<Link | undefined> {
  const session = await $.env.get('CLAUDE_SESSION_MANAGER_ID')
  if (session) {
    const socket = await $.env.get('SM_SOCKET')
    const token = await $.env.get('SM_SESSION_TOKEN')
    const isDriven = (await $.env.get('SM_DRIVER')) === 'mod'
    if (!isDriven || !socket?.startsWith('unix:') || !token) return undefined
    return { socketPath: socket.slice('unix:'.length), url: `http://localhost/sessions/${session}/link`, token }
  }
  if (!isInteractive) return undefined
  isOwn = true
  asks = (await $.env.get('SM_PLUGIN_ROTATE')) !== 'auto'
  const state = (await $.env.get('XDG_STATE_HOME')) || `${await $.env.get('HOME')}/.local/state`
  const home = (await $.env.get('SM_HOME')) || `${state}/sm`
  return { socketPath: `${home}/hooks.sock`, url: 'http://localhost/link/claude' }
}

/** Undefined if no server answers that knows this client; its refusal in words if it does not take it. */
async function exchange($: EngineInterface, body: Fields): Promise<Answer | undefined> {
  const answer = await send($, body)
  if (answer === undefined) return undefined
  if (answer.code === 'no_session' && seen !== undefined && body.hook === undefined) {
    const met = await exchange($, { hook: { ...seen, hook_event_name: 'SessionStart', source: 'startup' } })
    const context = contextOf(met)
    if (context !== undefined) inBackground(tell($, context))
    return met === undefined ? undefined : send($, body)
  }
  const isStrange = answer.code !== undefined && STRANGE.includes(answer.code)
  return isOwn && isStrange ? undefined : answer
}

async function send($: EngineInterface, body: Fields): Promise<Answer | undefined> {
  if (link === undefined) return undefined
  try {
    const response = await $.http.fetch(link.url, {
      method: 'POST',
      headers: { 'content-type': 'application/json', ...(link.token ? { authorization: `Bearer ${link.token}` } : {}) },
      body: JSON.stringify({ generation, ...body }),
      socketPath: link.socketPath,
    })
    const answer = JSON.parse(response.text) as Answer & { error?: string; hint?: string }
    if (!response.ok) return { refused: [answer.error, answer.hint].filter(Boolean).join(': '), code: answer.code ?? '' }
    if (answer.rotate !== undefined) asks = answer.rotate !== 'auto'
    return answer
  } catch {
    return undefined
  }
}

/** Report a hook of the user's own session, which has none that go to the server. */
async function heard(
  $: EngineInterface,
  hook: { agent_id?: string },
  more: Fields = {},
  patience = HOOK_TIMEOUT_MS,
): Promise<Answer | undefined> {
  if (hook.agent_id !== undefined) return undefined
  seen = hook
  if (!isOwn) return undefined
  const answer = await Promise.race([exchange($, { hook, ...more }), $.clock.sleep(patience)])
  if (answer !== undefined && answer.refused === undefined) $.clock.after(1, () => inBackground(poll($)))
  return answer ?? undefined
}

function contextOf(answer: Answer | undefined): string | undefined {
  return answer?.document?.whole ?? answer?.reply?.hookSpecificOutput?.additionalContext
}

/** What a context begins with. */
async function opening($: EngineInterface, source: string, others: string[], heard: Answer | undefined): Promise<string[]> {
  if (document !== undefined && source === 'clear') {
    const text = loaded(document, said)
    document = undefined
    return [...others, text]
  }
  const context = contextOf(heard)
  if (context !== undefined) return [...others, context]
  if (isOwn || source === 'startup') return others
  const answer = await Promise.race([exchange($, { started: true }), $.clock.sleep(PATIENT_TIMEOUT_MS)])
  const given = answer?.document
  return given === undefined ? others : [...others.filter(text => text !== given.part), given.whole]
}

/**
 * What a user elsewhere answers to a dialog, which is open meanwhile. Undefined once there is nothing to wait for; a
 * server that is started again is asked again. An answer at the keyboard does not abort `signal` (2.1.328).
 */
async function answered($: EngineInterface, hook: Fields, signal: { aborted: boolean }): Promise<Decision | undefined> {
  askCount += 1
  const ask = { number: askCount, hook }
  for (let left = MAX_ASK_RETRIES; left > 0 && !signal.aborted; ) {
    const asked = Date.now()
    const answer = await exchange($, { ask, hold: HOLD_S })
    const isEmpty = answer !== undefined && answer.reply === undefined && answer.over !== true && answer.refused === undefined
    if (answer === undefined || (isEmpty && Date.now() - asked < MIN_HOLD_MS)) {
      left -= 1
      await $.clock.sleep(ASK_RETRY_MS)
      continue
    }
    const decision = answer.reply?.hookSpecificOutput?.decision
    if (decision !== undefined) return decision
    if (answer.over === true || answer.refused !== undefined) return undefined
  }
  return undefined
}

/** Ask the user once; who has typed /sm:handoff is not asked. */
async function mayRotate($: EngineInterface): Promise<boolean> {
  if (!asks || isWanted) return true
  try {
    isAllowed ??= (await $.ui.ask(QUESTION, [YES, NO])) === YES
  } catch {
    isAllowed = false
  }
  return isAllowed
}

async function poll($: EngineInterface): Promise<void> {
  if (isPolling) return
  isPolling = true
  let misses = 0
  let mostMisses = MAX_FIRST_MISSES
  for (let wait = MIN_RETRY_MS; !isOwn || misses < mostMisses; ) {
    const answer = await acknowledge($, { hold: misses > 0 ? 0 : HOLD_S }) // a server that is back says so at once
    if (answer === undefined || answer.refused !== undefined) {
      misses += 1
      await $.clock.sleep(wait)
      wait = Math.min(2 * wait, MAX_RETRY_MS)
      continue
    }
    if (misses > 0 && !isHeard) {
      tokens = undefined
      inBackground(look($))
    }
    misses = 0
    mostMisses = MAX_MISSES
    wait = MIN_RETRY_MS
    for (const order of answer.orders ?? []) inBackground(carryOut($, order))
  }
  isPolling = false
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
    if (result.is_open === true) results.delete(order.id)
    else results.set(order.id, result)
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
    case 'fork':
      return fork($, order.text ?? '')
  }
  throw new Error(`unknown order ${order.kind}`)
}

/** Clear the context, and with a text wake the agent in the new one. */
async function rotate($: EngineInterface, order: Pick<Order, 'text' | 'as_user'>): Promise<Fields> {
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

/** With a document that no server has. After the user's Stop the client refuses, and the end of the next turn tries again. */
async function rotateAlone($: EngineInterface): Promise<void> {
  if (document !== undefined) await rotate($, { text: WAKE, as_user: true })
}

async function submit($: EngineInterface, order: Pick<Order, 'text' | 'as_user'>): Promise<Fields> {
  const submitted = await $.prompt.submit({ text: order.text ?? '', ...(order.as_user ? { asUser: true as const } : {}) })
  return submitted.drop === undefined ? {} : { dropped: submitted.drop }
}

/** With the next request, in a frame of our own: 2.1.300 adds none, and newer clients do not double it. */
async function tell($: EngineInterface, text: string): Promise<Fields> {
  const framed = `<system-reminder>\n${text}\n</system-reminder>`
  const row = await $.session.append({ message: { type: 'user', content: [{ type: 'text', text: framed }] } })
  return row.deny === undefined ? {} : { problem: row.deny }
}

/**
 * One request over the context as it was last sent, apart from the conversation: neither that nor the screen shows it.
 * Where none was made the order may be given again.
 */
async function fork($: EngineInterface, prompt: string): Promise<Fields> {
  for (let left = MAX_FORK_TRIES; ; await $.clock.sleep(LOOK_INTERVAL_MS)) {
    const reply = await $.model.fork({ prompt })
    if (reply.isAnswered) return { text: reply.text.slice(0, MAX_ANSWER) }
    left -= 1
    const isOpen = reply.reason === 'nothing-to-fork'
    if (!isOpen || left === 0) return { problem: `no answer: ${reply.reason}`, ...(isOpen ? { is_open: true } : {}) }
  }
}

/** Report what the account has used of its limits, when that has changed. */
async function reportLimits($: EngineInterface, rateLimits: SessionUsage['rateLimits']): Promise<void> {
  const limits = rateLimits.map(({ kind, percentUsed, resetsAt }) => ({
    kind,
    percent: percentUsed,
    resets_at: resetsAt ? Date.parse(resetsAt) / 1_000 : undefined,
  }))
  const now = JSON.stringify(limits)
  if (now === shares || limits.length === 0) return
  shares = now
  if ((await exchange($, { limits })) === undefined && shares === now) shares = ''
}

/** Report how full the context is, once for each response; where no server hears it the agent is told by us. */
async function look($: EngineInterface): Promise<void> {
  const { context, rateLimits } = await $.session.usage()
  inBackground(reportLimits($, rateLimits)) // the context waits for none of it
  if (context.tokens === undefined || context.tokens === tokens) return
  tokens = context.tokens
  const conversation = await $.session.id()
  const answer = await exchange($, { context: { conversation, tokens, window: context.window } })
  isHeard = answer !== undefined
  if (answer !== undefined || !isOwn || isAllowed === false || document !== undefined) return
  const due = notice(conversation, tokens, context.window)
  if (due !== undefined) await tell($, due)
}
