// What holds for a client that no server of `sm` answers: when its agent is told, and in which words.
//
// It calls nothing of the client; sm.ts does. Where a server answers, its rules and words take the place of these.

/** What the client keeps free for its own compaction (2.1.328). */
const COMPACTION_MARGIN = 33_000
/** The defaults of `sm`: a share of what is usable, or so many tokens, whichever comes first. */
const LEVELS = [
  { share: 0.6, tokens: 150_000 },
  { share: 0.8, tokens: 200_000 },
]
const HOW =
  'Give it the goal, what is done, what is not, decisions and constraints, files changed, the exact next step.'

export const QUESTION = 'May sm clear this context now, and let the agent continue from its handoff document?'
export const YES = 'Yes, in this session'
export const NO = 'No, not by itself'
export const DECLINED =
  'The user does not want this context to be cleared by itself. Continue your work here; do not ask for it again. ' +
  'When they want it they type /sm:handoff.'
export const WAKE =
  'Continue from where you left off: the handoff document loaded at session start says where that is.'

/** How many notices there were in `conversation`. */
let told = 0
let conversation = ''

/** Return the notice that is due; each level has one in a conversation. */
export function notice(current: string, tokens: number, window: number): string | undefined {
  if (current !== conversation) {
    conversation = current
    told = 0
  }
  const usable = window - COMPACTION_MARGIN
  const level = LEVELS.filter(limit => tokens >= Math.min(limit.share * usable, limit.tokens)).length
  if (level <= told) return undefined
  told = level
  const percent = Math.round((100 * tokens) / usable)
  return level === LEVELS.length
    ? `[sm context] Context critically high. Call the tool mcp__sm__handoff NOW. Compaction is imminent.\n${HOW}`
    : `[sm context] Context at ${tokens.toLocaleString('en-US')} tokens (~${percent}%). ` +
        `Consider handing off with the tool mcp__sm__handoff.\n${HOW}`
}

/** Every level is told again: the client has compacted, in the same conversation. */
export function compacted(): void {
  conversation = ''
}

/** Return what a context begins with: the document, and what the user said after it was written. */
export function loaded(document: string, said: readonly string[]): string {
  const quoted = said.map(text => text.replaceAll(/^/gm, '> ')).join('\n\n')
  const after = said.length === 0 ? '' : `\nWhat the user said after it was written:\n${quoted}\n`
  return `=== HANDOFF LOADED ===\n${document.trim()}\n${after}=== END HANDOFF ===`
}
