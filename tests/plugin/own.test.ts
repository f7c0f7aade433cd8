// The module in a client that the user started themselves, with a server of theirs and without one.
import type { On } from 'claude-code'
import { expect, mock, test } from 'claude-code/testing'

type Sent = { hook?: Record<string, string>; handoff?: string; context?: object; hold?: number }

const START = { cwd: '/p', surface: 'terminal', isInteractive: true } as const
const PROMPT = { hook_event_name: 'UserPromptSubmit', session_id: 'c0', transcript_path: '/t', cwd: '/p', prompt: 'x' } as const
const CLEARED = { hook_event_name: 'SessionStart', source: 'clear', session_id: 'c1', transcript_path: '/t', cwd: '/p' } as const
const TAKEN = 'Handoff scheduled — will execute after current turn completes. End your turn now.'

/** A client with the module in it; `serves` says whether a server answers. */
function client(on: On, serves: boolean, environment: Record<string, string> = {}) {
  const clock = mock.clock(on)
  const sent: Sent[] = []
  const ran: string[] = []
  const asked: string[] = []
  const world = { serves, knows: false, conversation: 'c0', tokens: 0, answer: 'Yes, in this session', rotate: 'ask', cleared: async () => {} }
  mock.env(on, { HOME: '/home/u', ...environment })
  on('session.start', async ($, e) => ({ cwd: e.cwd }))
  on('session.id', async () => ({ value: world.conversation }))
  on('tool.register', async () => ({ value: undefined }))
  on('command.run', async ($, e) => {
    ran.push(`/${e.command}`)
    world.conversation = `c${ran.length}`
    await world.cleared()
    return {}
  })
  on('prompt.submit', async ($, e) => {
    ran.push(e.text)
    return { text: e.text }
  })
  on('session.usage', async () => ({
    value: { startedAt: 0, context: { tokens: world.tokens || undefined, window: 200_000 }, rateLimits: [] },
  }))
  on('session.append', async ($, e, next) => {
    const [block] = e.message.content
    ran.push(block?.type === 'text' ? block.text : '')
    return next(e)
  })
  on('turn.start', async ($, e) => ({ turnId: e.turnId }))
  on('turn.complete', async ($, e) => ({ text: e.answer }))
  on('classic.SessionStart', async () => ({}))
  on('classic.UserPromptSubmit', async () => ({}))
  on('tool.call', { tool: 'AskUserQuestion' }, async ($, e) => {
    const question = e.questions[0]?.question ?? ''
    asked.push(question)
    return { result: { questions: e.questions, answers: { [question]: world.answer } } }
  })
  on('http.fetch', async ($, e) => {
    expect(e.url).toBe('http://localhost/link/claude')
    expect(e.init?.headers?.authorization).toBe(undefined)
    const body = JSON.parse(e.init?.body as string) as Sent
    sent.push(body)
    if (!world.serves) throw new Error('connection refused')
    expect(e.init?.socketPath).toBe('/home/u/.local/state/sm/hooks.sock')
    world.knows ||= body.hook !== undefined
    if (!world.knows) return answered(404, { error: 'unknown', code: 'no_session' })
    if (body.hold) await clock.sleep(1000 * body.hold)
    return answered(200, { orders: [], rotate: world.rotate })
  })
  return { clock, sent, ran, asked, world }
}

function answered(status: number, body: object) {
  return { value: { status, ok: status === 200, headers: {}, text: JSON.stringify(body) } }
}

test('in an idle client without a server nothing runs after a second', async ($, on) => {
  const { clock, sent } = client(on, false)
  await $.session.start(START)
  await clock.advance(1_000)
  const asked = sent.length
  await clock.advance(600_000)
  expect([asked, sent.length]).toEqual([3, 3])
})

test('a client without a user at it is left alone', async ($, on) => {
  const { clock, sent } = client(on, true)
  await $.session.start({ ...START, surface: null, isInteractive: false })
  await $.classic.UserPromptSubmit(PROMPT)
  await clock.advance(60_000)
  expect(sent).toHaveLength(0)
})

test('without a server each level is told once in a conversation', async ($, on) => {
  const { clock, ran, world } = client(on, false)
  await $.session.start(START)
  await $.turn.start({ text: 'work', turnId: 't1' })
  for (const tokens of [50_000, 110_000, 120_000, 140_000, 150_000]) {
    world.tokens = tokens
    await clock.advance(1_000)
  }
  expect(ran).toHaveLength(2)
  expect(ran[0]).toContain('Context at 110,000 tokens (~66%). Consider handing off with the tool mcp__sm__handoff.')
  expect(ran[1]).toContain('Context critically high. Call the tool mcp__sm__handoff NOW.')
})

test('after a compaction each level is told again', async ($, on) => {
  const { clock, ran, world } = client(on, false)
  on('classic.PostCompact', async () => ({}))
  await $.session.start(START)
  await $.turn.start({ text: 'work', turnId: 't1' })
  for (const tokens of [110_000, 30_000, 111_000]) {
    world.tokens = tokens
    await clock.advance(1_000)
  }
  expect(ran).toHaveLength(1)
  await $.classic.PostCompact({ ...PROMPT, hook_event_name: 'PostCompact', trigger: 'auto', compact_summary: '' })
  world.tokens = 112_000
  await clock.advance(1_000)
  expect(ran).toHaveLength(2)
})

test('without a server it clears at the end of the turn and begins from the document', async ($, on) => {
  const { clock, ran, asked, world } = client(on, false)
  let opened: readonly string[] | undefined
  world.cleared = async () => {
    opened = (await $.classic.SessionStart(CLEARED)).additionalContext
  }
  await $.session.start(START)
  await $.turn.start({ text: 'work', turnId: 't1' })
  expect(await $.tool.call({ tool: 'mcp__sm__handoff', document: '# Goal' })).toEqual({ result: TAKEN })
  expect(ran).toEqual([])
  await $.turn.complete({ turnId: 't1', reason: 'answer', answer: '' })
  await clock.advance(1_000)
  expect(ran).toHaveLength(2)
  expect(ran[0]).toBe('/clear')
  expect(ran[1]).toContain('Continue from where you left off')
  expect(opened).toEqual(['=== HANDOFF LOADED ===\n# Goal\n=== END HANDOFF ==='])
  expect(asked).toHaveLength(1)
})

test('the user is asked once, and a no holds', async ($, on) => {
  const { clock, ran, asked, world } = client(on, false)
  world.answer = 'No, not by itself'
  await $.session.start(START)
  for (const turnId of ['t1', 't2']) {
    await $.turn.start({ text: 'work', turnId })
    const answer = await $.tool.call({ tool: 'mcp__sm__handoff', document: '# Goal' })
    expect(answer.deny).toContain('The user does not want this context to be cleared')
    world.tokens = 150_000
    await clock.advance(1_000)
    await $.turn.complete({ turnId, reason: 'answer', answer: '' })
    await clock.advance(1_000)
  }
  expect([ran, asked.length]).toEqual([[], 1])
})

test('nobody is asked where the setting says so', async ($, on) => {
  const { asked } = client(on, false, { SM_PLUGIN_ROTATE: 'auto' })
  await $.session.start(START)
  expect(await $.tool.call({ tool: 'mcp__sm__handoff', document: '# Goal' })).toEqual({ result: TAKEN })
  expect(asked).toHaveLength(0)
})

test('a server hears the hooks, and takes the document and the readings', async ($, on) => {
  const { clock, sent, ran, world } = client(on, true)
  world.rotate = 'auto'
  await $.session.start(START)
  await $.classic.UserPromptSubmit(PROMPT)
  await $.turn.start({ text: 'work', turnId: 't1' })
  world.tokens = 150_000
  await clock.advance(1_000)
  expect(await $.tool.call({ tool: 'mcp__sm__handoff', document: '# Goal' })).toEqual({ result: TAKEN })
  await $.turn.complete({ turnId: 't1', reason: 'answer', answer: '' })
  await clock.advance(1_000)
  expect(sent.filter(body => body.hook).map(body => body.hook?.prompt)).toEqual(['x'])
  expect(sent.flatMap(body => body.handoff ?? [])).toEqual(['# Goal'])
  expect(sent.filter(body => body.context)).toHaveLength(1)
  expect(ran).toEqual([])
})

test('a server that has just started is told of the client first', async ($, on) => {
  const { sent, world } = client(on, false)
  await $.session.start(START)
  await $.classic.UserPromptSubmit(PROMPT)
  world.serves = true
  expect(await $.tool.call({ tool: 'mcp__sm__handoff', document: '# Goal' })).toEqual({ result: TAKEN })
  expect(sent.slice(-3).map(body => body.hook?.hook_event_name ?? body.handoff)).toEqual(['# Goal', 'SessionStart', '# Goal'])
})
