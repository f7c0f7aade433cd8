"""Sentences, and what tells a rule, a request or a decision from talk.

Structure decides first: who speaks, where in a turn, how long. The words here are the few that most languages build
such sentences with; a text without any of them is ranked by its structure alone, never left out for it.
"""

from __future__ import annotations

import re

ENDS = re.compile(r"(?<=[.!?])(?<!\d\.)(?<!\b[A-Z]\.)(?<!e\.g\.)(?<!i\.e\.)(?<!etc\.)[\"')\]]*\s+|(?<=[。？！])|\n+")
"""A number with a point is a date or an item in many languages, so no sentence ends there."""
MARKS = re.compile(r"[`/_\\]|\d|\b[a-z]+[A-Z]\w+")
"""What names a thing exactly: paths, numbers, code."""
RULE = re.compile(
    r"\b(?:must|never|always|don'?t|do not|cannot|can'?t|should(?:n'?t)?|shall|not|no|none|nothing|only|just|keep|stay|"
    r"leave|avoid|without|unless|until|every|each|at (?:most|least)|below|under|above|make sure|ensure|stick|rather|"
    r"instead|first|before|ask|any(?:thing|where|one|body)?|forbidden|allowed|off limits|hands off)\b"
    r"|\b(?:nie|niemals|nicht|nichts|immer|nur|kein\w*|muss|müssen|darf|dürfen|soll\w*|bleib\w*|stets|bevor|statt)\b"
    r"|\b(?:jamais|toujours|ne|pas|seulement|doit|sans|nunca|siempre|solo|sólo|debe\w*|sin|mai|sempre|senza)\b"
    r"|ください|必ず|ないで|禁止|のみ|だけ|まま|不要|必须|禁止|只能|务必|不得",
    re.IGNORECASE,
)
REQUEST = re.compile(
    r"\b(?:please|can you|could you|would you|will you|i(?:'d| would) like|i want|i need|we need|we should|let'?s|"
    r"your (?:task|job)|bitte|ich (?:möchte|brauche|will)|je veux|il faut|quiero|necesito|por favor|s'il (?:te|vous))\b"
    r"|^\W*(?:now |then |next |and |also |so )*(?:add|build|create|write|implement|make|find|fix|get|give|investigate|"
    r"review|check|split|move|rename|refactor|remove|replace|migrate|update|design|compare|look|go|pull|extract|port|"
    r"change|convert|turn|set up|introduce|extend|support|teach|rework|figure|work)\b"
    r"|してください|たい|お願い|请|帮我",
    re.IGNORECASE,
)
SHIFT = re.compile(
    r"\b(?:change of plans?|new (?:plan|direction|goal|task|topic|job)|plans? (?:has|have) changed|hold on|forget (?:that|this|it|the|about|what)|"
    r"drop (?:that|this|it)|scrap|(?:new|other|different) priorit\w+|priorit\w+ (?:has|have)? ?(?:changed|shifted)|something else|"
    r"different (?:thing|topic|task)|moving on|parked|park (?:that|this|it)|on hold|set aside|put (?:that|this|it) aside|redirect|"
    r"another (?:topic|thing|task)|more (?:urgent|important)|turn to|leave (?:that|this|it) (?:for|at))\b"
    r"|^\W*(?:\w+\W+){0,3}(?:instead|stop|halt|wait|next|now)\b"
    r"|planänderung|\b(?:halt|stopp|stattdessen|vorrang|jetzt|neues thema|als nächstes|etwas anderes)\b"
    r"|\b(?:plutôt|maintenant|arrête\w*|changement|ahora|cambio|mejor|para)\b"
    r"|変更|止めて|代わり|優先|次は|改变|停|改为|现在",
    re.IGNORECASE,
)
CHOICE = re.compile(
    r"\b(?:decid\w*|decision|chose|chosen|choos\w*|choice|go(?:ing)? (?:with|for)|went with|opt(?:ed|ing)?|settl\w+|pick\w*|"
    r"prefer\w*|adopt\w*|verdict|conclu\w+|use|keep|stay with|stick\w* (?:with|to))\b"
    r"|entscheid\w*|entschied\w*|entschluss|\b(?:nehme|bleibe|wähle|gewählt)\b|\b(?:décid\w*|choisi\w*|eleg\w+|decid\w+|scelt\w+)\b|決定|採用|選|决定|采用|选择",
    re.IGNORECASE,
)
CONTRAST = re.compile(
    r"\b(?:instead|rather than|over|not|versus|vs|than|ruled out|is out|are out|drop\w*|reject\w*|discard\w*|against|beats?|favou?r)\b"
    r"|\b(?:statt|anstatt|nicht|gegen|scheidet)\b|\b(?:plutôt|au lieu|pas|en vez)\b|ではなく|より|見送|而不是|不用",
    re.IGNORECASE,
)
REASON = re.compile(
    r"\b(?:because|since|reason\w*|so that|due to|as|otherwise|given|would|why)\b"
    r"|[:;]\s|\b(?:weil|da|denn|damit|grund|wegen)\b|\b(?:parce|car|puisque|porque|ya que|perché)\b|ため|から|理由|ので|因为|由于",
    re.IGNORECASE,
)
FOUND = re.compile(
    r"\b(?:root cause|cause[ds]?|turns? out|culprit|found|finding|bug|blocking|blocker|confirmed|measured|risk|explains?)\b"
    r"|\b(?:ursache|grund|liegt an|fehler)\b|原因|[\w/-]+\.\w{1,5}:\d+",
    re.IGNORECASE,
)
NEXT = re.compile(
    r"\b(?:next|then|afterwards?|remaining|remains|to do|todo|plan|will|going to|first thing|continue with|left)\b"
    r"|nächst\w*|danach|\b(?:ensuite|prochain\w*|próxim\w*|siguiente|luego)\b|次|これから|接下来|下一步",
    re.IGNORECASE,
)
PAST = re.compile(
    r"\b(?:was|were|had|has been|have been|came|went|took|said|told|asked|showed|saw|seen|liked|read|looked|seems?|seemed|noticed|"
    r"compared|turned|mentioned|wrote|got|thought|think|wonder\w*|i (?:am|was|saw)|will move|stays|stands)\b",
    re.IGNORECASE,
)
ASIDE = re.compile(
    r"\b(?:thanks?|thank you|nice|interesting|by the way|btw|fyi|for your information|anyway|go on|carry on|go ahead|"
    r"continue|on our side|no bearing|nothing to do|another matter|outside of)\b",
    re.IGNORECASE,
)
LOOKING = re.compile(
    r"^(?:ok(?:ay)?[,.]? |good[,.]? |right[,.]? )?(?:let me|let's (?:see|look|check)|i'?ll|i will|now|looking|checking|reading|running|adjusting|"
    r"one more|that matches|next,? (?:the|i))\b",
    re.IGNORECASE,
)
BRIEF = 28
"""A text less wide than this that names nothing exactly tells nothing by itself."""
NODS = frozenset(
    ["ok", "okay", "k", "yes", "yep", "yup", "yeah", "sure", "fine", "good", "great", "nice", "cool", "perfect", "thanks", "thank", "you", "please", "go", "on", "ahead", "continue", "proceed", "carry", "keep", "going", "at", "it", "with", "that", "looks", "alright", "right", "next", "do", "now", "lgtm", "sgtm", "and", "then", "ja", "gut", "weiter", "passt", "danke", "bitte", "oui", "parfait", "merci", "vas", "y", "si", "sí", "vale", "bien", "gracias", "はい", "お願いします", "続けてください", "好", "好的", "继续", "可以", "嗯", "谢谢"]
)


def sentences(text: str) -> list[str]:
    return [part for part in (one.strip() for one in ENDS.split(text) if one) if part]


def width(text: str) -> int:
    """About how many letters it would have in Latin script."""
    return sum(2 if ord(c) > 0x2E80 else 1 for c in text)  # noqa: PLR2004  # where East Asian scripts begin


def is_brief(text: str) -> bool:
    return width(text) < BRIEF and not has(MARKS, text) and not has(CONTRAST, text)


def is_nod(text: str) -> bool:
    return is_brief(text) and NODS.issuperset(re.findall(r"\w+", text.casefold()))


def is_question(text: str) -> bool:
    return text.endswith(("?", "？"))


def is_aside(parts: list[str]) -> bool:
    """A longer message that ends with a nod tells something and asks for nothing."""
    return len(parts) > 2 and is_brief(parts[-1])  # noqa: PLR2004  # a rule or two may well be followed by "go on"


def has(cue: re.Pattern[str], text: str) -> bool:
    return cue.search(text) is not None


def rule_weight(sentence: str, siblings: list[str]) -> float:
    """How much it looks like something a person wants to hold; `siblings` are the sentences of its message."""
    cues = min(len(RULE.findall(sentence)), 3)
    if is_question(sentence) or (not cues and len(siblings) > 3):  # noqa: PLR2004  # an account of something
        return -1.0
    weight = cues * 0.8 + 0.6 * has(MARKS, sentence) - 1.2 * is_aside(siblings)
    weight += 1.5 if len(siblings) <= 2 else 0.5 if len(siblings) == 3 else 0.0  # noqa: PLR2004  # said for its own sake
    return weight - 0.6 * min(len(PAST.findall(sentence)), 3) - 2.0 * has(ASIDE, sentence)


def decision_weight(text: str) -> float:
    """How much it looks like a choice with its reason; the three kinds of words together count most."""
    kinds = [has(CHOICE, text), has(CONTRAST, text), has(REASON, text)]
    return (0.0, 0.6, 1.8, 3.6)[sum(kinds)] + 1.0 * bool(re.match(r"\W*(?:decision|decided|entscheidung|決定)", text, re.IGNORECASE))


def finding_weight(text: str) -> float:
    return 1.6 * has(FOUND, text) + 0.4 * has(MARKS, text) - 2.0 * has(LOOKING, text)


def shared_run(one: str, other: str, least: int = 4) -> str:
    """The longest run of at least `least` words that both have, "" if there is none."""
    words, text = re.findall(r"\w+", one.casefold()), " " + " ".join(re.findall(r"\w+", other.casefold())) + " "
    for size in range(len(words), least - 1, -1):
        for at in range(len(words) - size + 1):
            run = " ".join(words[at : at + size])
            if f" {run} " in text:
                return run
    return ""
