// What the module does with the orders of a server, without a client or a server: `claude plugin test plugin`.
import type { On } from 'claude-code'
import { expect, mock, test } from 'claude-code/testing'

type Sent = { generation: string; ask?: { number: number; hook: { tool_name: string } }; hold?: number; done?: Done[]; handoff?: string; context?: object; limits?: object; started?: boolean }
type Limit = { kind: string; percentUsed: number; resetsAt?: string }
type Done = { id: number; problem?: string; dropped?: string; text?: string }
type Order = { id: number; kind: string } & Record<string, unknown>

const SESSION = {
  SM_DRIVER: 'mod',
  SM_SOCKET: 'unix:/home/x/sm.sock',
  CLAUDE_SESSION_MANAGER_ID: '0123abcd',
  SM_SESSION_TOKEN: 'secret',
}
const START = { cwd: '/p', surface: 'terminal', isInteractive: true } as const

/** A client with the module in it, and a server that gives its orders to the first poll. */
function client(on: On, environment: Record<string, string> = SESSION) {
  const clock = mock.clock(on)
  const sent: Sent[] = []
  const ran: string[] = []
  const world = { orders: [] as Order[], answers: true, conversation: 'c0', refused: '', tokens: 0, deny: '', document: undefined as object | undefined, hangs: false, rateLimits: [] as Limit[], asked: async (_: number): Promise<object> => ({ over: true }) }
  mock.env(on, environment)
  on('session.start', async ($, e) => ({ cwd: e.cwd }))
  on('session.id', async () => ({ value: world.conversation }))
  on('tool.register', async ($, e) => ({ value: undefined }))
  on('command.run', async ($, e) => {
    ran.push(`/${e.command}`)
    await clock.sleep(50)
    world.conversation = `c${ran.length}`
    return {}
  })
  on('prompt.submit', async ($, e) => {
    ran.push(e.text)
    return { text: e.text }
  })
  on('session.usage', async () => ({
    value: { startedAt: 0, context: { tokens: world.tokens || undefined, window: 200_000 }, rateLimits: world.rateLimits },
  }))
  on('session.append', async ($, e, next) => {
    const [block] = e.message.content
    ran.push(block?.type === 'text' ? block.text : '')
    return world.deny ? { deny: world.deny } : next(e)
  })
  on('turn.start', async ($, e) => ({ turnId: e.turnId }))
  on('turn.complete', async ($, e) => ({ text: e.answer }))
  on('http.fetch', async ($, e) => {
    expect(e.url).toBe('http://localhost/sessions/0123abcd/link')
    expect(e.init?.socketPath).toBe('/home/x/sm.sock')
    expect(e.init?.headers?.authorization).toBe('Bearer secret')
    const body = JSON.parse(e.init?.body as string) as Sent
    sent.push(body)
    if (world.hangs) await clock.sleep(30_000)
    if (!world.answers) throw new Error('connection refused')
    if (body.ask !== undefined) return answered(200, { orders: [], ...(await world.asked(sent.filter(one => one.ask).length)) })
    if (world.refused) return answered(409, { error: world.refused, code: 'refused', hint: 'sm list' })
    const orders = body.hold ? world.orders.splice(0) : []
    if (body.hold && orders.length === 0) await clock.sleep(1000 * body.hold)
    return answered(200, { orders, ...(body.started ? { document: world.document } : {}) })
  })
  return { clock, sent, ran, world, done: () => sent.flatMap(body => body.done ?? []) }
}

function answered(status: number, body: object) {
  return { value: { status, ok: status === 200, headers: {}, text: JSON.stringify(body) } }
}

test('a session that is driven by keys asks nothing of anybody, though the user has installed the plugin', async ($, on) => {
  const { SM_DRIVER, ...keys } = SESSION
  const { clock, sent } = client(on, keys)
  await $.session.start(START)
  await clock.advance(60_000)
  expect([SM_DRIVER, sent.length]).toEqual(['mod', 0])
})

test('it polls as soon as the client has started', async ($, on) => {
  const { clock, sent } = client(on)
  await $.session.start(START)
  await clock.advance(10)
  expect(sent).toEqual([{ generation: sent[0]?.generation, hold: 25, done: [] }])
})

test('a server that is gone is asked again with pauses that grow to two seconds', async ($, on) => {
  const { clock, sent, world } = client(on)
  world.answers = false
  await $.session.start(START)
  await clock.advance(60_000)
  expect(sent.length).toBeGreaterThan(20)
  expect(sent.length).toBeLessThan(40)
})

test('a server that refuses is not asked in a tight loop either', async ($, on) => {
  const { clock, sent, world } = client(on)
  world.refused = 'Session 0123abcd has ended'
  await $.session.start(START)
  await clock.advance(60_000)
  expect(sent.length).toBeLessThan(40)
})

test('it clears, wakes the agent in the new conversation, and acknowledges both', async ($, on) => {
  const { clock, ran, world, done } = client(on)
  world.orders.push({ id: 7, kind: 'rotate', text: 'wake', as_user: true })
  await $.session.start(START)
  await clock.advance(1_000)
  expect(ran).toEqual(['/clear', 'wake'])
  expect(done()).toEqual([{ id: 7, before: 'c0', conversation: 'c1' }])
})

test('an order that is given twice is carried out once, and acknowledged again', async ($, on) => {
  const { clock, ran, world, done } = client(on)
  const order = { id: 7, kind: 'rotate', text: 'wake' }
  world.orders.push(order, { ...order })
  await $.session.start(START)
  await clock.advance(1_000)
  world.orders.push({ ...order })
  await clock.advance(30_000)
  expect(ran).toEqual(['/clear', 'wake'])
  expect(done().map(result => result.id)).toEqual([7, 7])
})

test('a second rotation is refused while one is under way', async ($, on) => {
  const { clock, ran, world, done } = client(on)
  world.orders.push({ id: 1, kind: 'rotate', text: 'a' }, { id: 2, kind: 'rotate', text: 'b' })
  await $.session.start(START)
  await clock.advance(1_000)
  expect(ran).toEqual(['/clear', 'a'])
  expect(done().find(result => result.id === 2)?.problem).toBe('a rotation is under way')
})

test('an order that it does not know is refused by name', async ($, on) => {
  const { clock, world, done } = client(on)
  world.orders.push({ id: 1, kind: 'explode' })
  await $.session.start(START)
  await clock.advance(1_000)
  expect(done()).toEqual([{ id: 1, problem: 'unknown order explode' }])
})

test('while a turn runs it reports how full the context is, once for each response', async ($, on) => {
  const { clock, sent, world } = client(on)
  await $.session.start(START)
  await $.turn.start({ text: 'work', turnId: 't1' })
  await clock.advance(1_000)
  for (const tokens of [100_000, 110_000, 110_000]) {
    world.tokens = tokens
    await clock.advance(1_000)
  }
  expect(sent.flatMap(body => (body.context ? [body.context] : []))).toEqual([
    { conversation: 'c0', tokens: 100_000, window: 200_000 },
    { conversation: 'c0', tokens: 110_000, window: 200_000 },
  ])
})

test('what the account has used of its limits is reported whenever it has changed', async ($, on) => {
  const { clock, sent, world } = client(on)
  await $.session.start(START)
  await $.turn.start({ text: 'work', turnId: 't1' })
  for (const percentUsed of [40, 40, 100]) {
    world.rateLimits = [{ kind: 'five_hour', percentUsed, resetsAt: '2026-11-29T16:00:30.000Z' }, { kind: 'spend_limit', percentUsed: 1 }]
    await clock.advance(1_000)
  }
  const [one, other, ...more] = sent.flatMap(body => (body.limits ? [body.limits] : []))
  expect(one).toEqual([{ kind: 'five_hour', percent: 40, resets_at: 1_795_968_030 }, { kind: 'spend_limit', percent: 1 }])
  expect(other).toEqual([{ kind: 'five_hour', percent: 100, resets_at: 1_795_968_030 }, { kind: 'spend_limit', percent: 1 }])
  expect(more).toEqual([])
})

test('a client is not looked at for a turn of a subagent', async ($, on) => {
  const { clock, sent, world } = client(on)
  await $.session.start(START)
  await $.turn.start({ text: 'work', turnId: 't1', agentId: 'a1' })
  world.tokens = 100_000
  await clock.advance(2_000)
  expect(sent.filter(body => body.context)).toHaveLength(0)
})

test('the last response of a turn is reported as the turn ends, and an idle client is not looked at', async ($, on) => {
  const { clock, sent, world } = client(on)
  await $.session.start(START)
  await $.turn.start({ text: 'work', turnId: 't1' })
  world.tokens = 100_000
  await $.turn.complete({ turnId: 't1', reason: 'answer', answer: '' })
  await clock.advance(50)
  expect(sent.filter(body => body.context)).toHaveLength(1)
  world.tokens = 120_000
  await clock.advance(2_000)
  expect(sent.filter(body => body.context)).toHaveLength(1)
})

test('what it tells the agent is framed as no words of the user', async ($, on) => {
  const { clock, ran, world, done } = client(on)
  world.orders.push({ id: 3, kind: 'tell', text: 'the port is 8080' })
  await $.session.start(START)
  await clock.advance(1_000)
  expect(ran).toEqual(['<system-reminder>\nthe port is 8080\n</system-reminder>'])
  expect(done()).toEqual([{ id: 3 }])
})

test('a refusal to tell the agent is a problem of the order', async ($, on) => {
  const { clock, world, done } = client(on)
  world.deny = 'not now'
  world.orders.push({ id: 3, kind: 'tell', text: 'x' })
  await $.session.start(START)
  await clock.advance(1_000)
  expect(done()).toEqual([{ id: 3, problem: 'not now' }])
})

const USAGE = { input_tokens: 1, output_tokens: 1, cache_read_input_tokens: 0, cache_creation_input_tokens: 0 }

test('a fork answers a prompt, and its text comes back cut to what a request may hold', async ($, on) => {
  const { clock, world, done } = client(on)
  const asked: string[] = []
  on('model.fork', async ($, e) => {
    asked.push(e.prompt)
    return { value: { isAnswered: true as const, text: 'd'.repeat(200_000), usage: USAGE } }
  })
  const order = { id: -7, kind: 'fork', text: 'write it' }
  world.orders.push(order)
  await $.session.start(START)
  await clock.advance(1_000)
  world.orders.push({ ...order })
  await clock.advance(30_000)
  expect(asked).toEqual(['write it'])
  expect(done().map(({ id, text }) => [id, text?.length])).toEqual([[-7, 100_000], [-7, 100_000]])
})

test('a fork that fails is a problem of the order', async ($, on) => {
  const { clock, world, done } = client(on)
  let asked = 0
  on('model.fork', async () => {
    asked += 1
    return { value: { isAnswered: false as const, reason: 'empty-reply' as const, usage: USAGE } }
  })
  world.orders.push({ id: -7, kind: 'fork', text: 'write it' })
  await $.session.start(START)
  await clock.advance(10_000)
  expect(done()).toEqual([{ id: -7, problem: 'no answer: empty-reply' }])
  expect(asked).toBe(1)
})

test('where there is nothing to fork yet it is tried again, and not for ever', async ($, on) => {
  const { clock, world, done } = client(on)
  let asked = 0
  on('model.fork', async () => {
    asked += 1
    if (asked !== 3) return { value: { isAnswered: false as const, reason: 'nothing-to-fork' as const } }
    return { value: { isAnswered: true as const, text: '# Goal', usage: USAGE } }
  })
  world.orders.push({ id: -7, kind: 'fork', text: 'write it' })
  await $.session.start(START)
  await clock.advance(2_000)
  expect(done()).toEqual([{ id: -7, text: '# Goal' }])
  world.orders.push({ id: -8, kind: 'fork', text: 'write it' })
  await clock.advance(60_000)
  expect(done()[1]).toEqual({ id: -8, problem: 'no answer: nothing-to-fork', is_open: true })
  expect(asked).toBeLessThan(30)
  world.orders.push({ id: -8, kind: 'fork', text: 'write it' })
  asked = 2
  await clock.advance(30_000)
  expect(done()[2]).toEqual({ id: -8, text: '# Goal' })
})

const CLEARED = { source: 'clear', hook_event_name: 'SessionStart' } as const

function begins(on: On, ...context: string[]) {
  on('classic.SessionStart', async () => ({ additionalContext: context }))
}

test('a context begins with the whole document, in place of the part of a hook', async ($, on) => {
  const { world } = client(on)
  begins(on, 'of another hook', 'par')
  await $.session.start(START)
  world.document = { whole: 'partly or whole', part: 'par' }
  const began = await $.classic.SessionStart(CLEARED)
  expect(began.additionalContext).toEqual(['of another hook', 'partly or whole'])
})

test('without a server a context begins with what the hooks have said', async ($, on) => {
  const { world } = client(on)
  begins(on, 'par')
  await $.session.start(START)
  world.answers = false
  const began = await $.classic.SessionStart(CLEARED)
  expect(began.additionalContext).toEqual(['par'])
})

test('a server that hangs delays a context that begins by two seconds', async ($, on) => {
  const { clock, world } = client(on)
  begins(on, 'par')
  await $.session.start(START)
  world.document = { whole: 'partly or whole', part: 'par' }
  world.hangs = true
  const beginning = $.classic.SessionStart(CLEARED)
  await clock.advance(2_100)
  expect((await beginning).additionalContext).toEqual(['par'])
})

const ASK = {
  hook_event_name: 'PermissionRequest', session_id: 'c0', transcript_path: '/t', cwd: '/p', tool_name: 'Bash', tool_input: { command: 'make' },
} as const
const ALLOWED = { behavior: 'allow' } as const

test('what the client asks its user is asked of the server again and again until there is an answer', async ($, on) => {
  const { clock, sent, world } = client(on)
  on('classic.PermissionRequest', async () => ({}))
  world.asked = async times => (times < 3 ? {} : { reply: { hookSpecificOutput: { decision: ALLOWED } } })
  await $.session.start(START)
  const answer = $.classic.PermissionRequest(ASK)
  await clock.advance(400)
  expect(sent.filter(body => body.ask)).toHaveLength(1) // one that answers at once and with nothing is about to stop
  await clock.advance(1_100)
  expect(await answer).toEqual({ decision: ALLOWED })
  const asked = sent.flatMap(body => (body.ask === undefined ? [] : [[body.ask.number, body.ask.hook.tool_name, body.hold]]))
  expect(asked).toEqual([[1, 'Bash', 25], [1, 'Bash', 25], [1, 'Bash', 25]])
})

test('each dialog has a number of its own', async ($, on) => {
  const { sent } = client(on)
  on('classic.PermissionRequest', async () => ({}))
  await $.session.start(START)
  for (let time = 0; time < 2; time++) expect(await $.classic.PermissionRequest(ASK)).toEqual({})
  expect(sent.flatMap(body => body.ask?.number ?? [])).toEqual([1, 2])
})

test('the answer of a hook of the user stands, and nobody else is asked', async ($, on) => {
  const { sent } = client(on)
  on('classic.PermissionRequest', async () => ({ decision: { behavior: 'deny', message: 'never' } }))
  await $.session.start(START)
  expect(await $.classic.PermissionRequest(ASK)).toEqual({ decision: { behavior: 'deny', message: 'never' } })
  expect(sent.filter(body => body.ask)).toEqual([])
})

test('a server that is gone for eight seconds leaves the dialog to the user at the terminal', async ($, on) => {
  const { clock, sent, world } = client(on)
  on('classic.PermissionRequest', async () => ({}))
  world.answers = false
  await $.session.start(START)
  const asked = $.classic.PermissionRequest(ASK)
  await clock.advance(9_000)
  expect(await asked).toEqual({})
  expect(sent.filter(body => body.ask)).toHaveLength(16)
})
