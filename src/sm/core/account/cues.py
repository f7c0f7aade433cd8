"""The few words that most languages build rules, requests, choices and asides with, one line a language.

They only rank what the structure has found: a text without any of them is ranked by who said it, where and at what
length, and is never left out for want of them. Keep the lists short.
"""

from __future__ import annotations

import re


def cue(*languages: str, anywhere: str = "", pattern: str = "") -> re.Pattern[str]:
    """Whole words, `|` between them; `anywhere` for scripts without spaces, `pattern` for more than words."""
    parts = [rf"\b(?:{words})\b" for words in languages]
    return re.compile("|".join(filter(None, (*parts, anywhere, pattern))), re.IGNORECASE)


RULE = cue(
    r"must|mustn'?t|never|always|don'?t|do not|cannot|can'?t|should(?:n'?t)?|shall|not|no|none|nothing|only|just",
    r"keep|stay|leave|avoid|without|unless|until|every|each|any(?:thing|where|one|body)?|at (?:most|least)",
    r"below|under|above|make sure|ensure|stick|rather|instead|first|before|ask|forbidden|allowed|off limits|hands off",
    r"nie|niemals|nicht|nichts|immer|nur|kein\w*|muss|müssen|darf|dürfen|soll\w*|bleib\w*|stets|bevor|statt",
    r"jamais|toujours|ne|pas|seulement|doit|sans|nunca|siempre|solo|sólo|debe\w*|sin|mai|sempre|senza",
    anywhere="ください|必ず|ないで|禁止|のみ|だけ|まま|不要|必须|禁止|只能|务必|不得",
)
STRONG = cue(
    r"must(?! have)|mustn'?t|never(?! (?:before|knew|mind))|always|don'?t|do not|forbidden",
    r"nie|niemals|immer|muss|jamais|toujours|nunca|siempre",
    anywhere="必ず|ないで|禁止|必须|务必",
)
"""Rules without a doubt, whatever stands around them."""
REQUEST = cue(
    r"please|can you|could you|would you|will you|i(?:'d| would) like|i want|i need|we need|we should|let'?s",
    r"your (?:task|job)|bitte|ich (?:möchte|brauche|will)|je veux|il faut|quiero|necesito|por favor|s'il (?:te|vous)",
    anywhere="してください|たい|お願い|请|帮我",
    pattern=r"^\W*(?:now |then |next |and |also |so )*(?:add|build|create|write|implement|make|find|fix|get|give|look|"
    r"go|investigate|review|check|split|move|rename|refactor|remove|replace|migrate|update|design|compare|pull|extract|"
    r"port|change|convert|turn|set up|introduce|extend|support|teach|rework|figure|work)\b",
)
SHIFT = cue(
    r"change of plans?|new (?:plan|direction|goal|task|topic|job)|plans? (?:has|have) changed|hold on|something else",
    r"forget (?:that|this|it|the|about|what)|drop (?:that|this|it)|scrap|(?:new|other|different) priorit\w+|redirect",
    r"priorit\w+ (?:has|have)? ?(?:changed|shifted)|different (?:thing|topic|task)|moving on|parked|on hold|set aside",
    r"p(?:ark|ut) (?:that|this|it)|another (?:topic|thing|task)|more (?:urgent|important)|turn to",
    r"leave (?:that|this|it) (?:for|at)|planänderung|halt|stopp|stattdessen|vorrang|jetzt|neues thema|als nächstes",
    r"plutôt|maintenant|arrête\w*|changement|ahora|cambio|mejor|para",
    anywhere="予定変更|方針変更|変わりました|止めて|代わり|優先|次は|计划有变|改变计划|先停|改为|现在",
    pattern=r"^\W*(?:\w+\W+){0,3}(?:instead|stop|halt|wait|next|now)\b",
)
CHOICE = cue(
    r"decid\w*|decision|chose|chosen|choos\w*|choice|go(?:ing)? (?:with|for)|went with|opt(?:ed|ing)?|settl\w+|pick\w*",
    r"prefer\w*|adopt\w*|verdict|conclu\w+|use|keep|stay with|stick\w* (?:with|to)",
    r"entscheid\w*|entschied\w*|entschluss|nehme|bleibe|wähle|gewählt|décid\w*|choisi\w*|eleg\w+|scelt\w+",
    anywhere="決定|採用|選|决定|采用|选择",
)
CONTRAST = cue(
    r"instead|rather than|over|not|versus|vs|than|ruled out|is out|are out|drop\w*|reject\w*|discard\w*|against|beats?",
    r"favou?r|statt|anstatt|nicht|gegen|scheidet|plutôt|au lieu|pas|en vez",
    anywhere="ではなく|より|見送|而不是|不用",
)
REASON = cue(
    r"because|since|reason\w*|so that|due to|as|otherwise|given|would",
    r"weil|da|denn|damit|grund|wegen|parce|car|puisque|porque|ya que|perché",
    anywhere="ため|から|理由|ので|因为|由于",
)
FOUND = cue(
    r"root cause|cause[ds]?|turns? out|culprit|found|finding|bug|blocking|blocker|confirmed|measured|risk|explains?",
    r"ursache|grund|liegt an|fehler",
    anywhere="原因",
    pattern=r"[\w/-]+\.\w{1,5}:\d+",
)
NEXT = cue(
    r"next|then|afterwards?|remaining|remains|to do|todo|plan|will|going to|first thing|continue with|left",
    r"nächst\w*|danach|ensuite|prochain\w*|próxim\w*|siguiente|luego",
    anywhere="次|これから|接下来|下一步",
)
PAST = cue(
    r"was|were|had|has been|have been|came|went|took|said|told|asked|showed|saw|seen|liked|read|looked|noticed",
    r"compared|turned|mentioned|wrote|got|thought|seems?|seemed|think|wonder\w*|i am|will move|stays|stands",
)
"""Of English alone: elsewhere an account is known by its length and its closing nod."""
ASIDE = cue(
    r"thanks?|thank you|nice|interesting|by the way|btw|fyi|for your information|anyway|go on|carry on|go ahead",
    r"continue|on our side|no bearing|nothing to do|another matter|outside of",
)
LOOKING = cue(
    pattern=r"^(?:ok(?:ay)?[,.]? |good[,.]? |right[,.]? )?(?:let me|let's (?:see|look|check)|i'?ll|i will|now|looking|"
    r"checking|reading|running|adjusting|one more|that matches|next,? (?:the|i))\b",
)
MARKS = re.compile(r"[`/_\\]|\d|\b[a-z]+[A-Z]\w+")
"""What names a thing exactly: paths, numbers, code."""
NODS = re.compile(
    r"(?:(?:ok|okay|k|yes|yep|yup|yeah|sure|fine|good|great|nice|cool|perfect|thanks|thank|you|please|go|on|ahead|continue|"
    r"proceed|carry|keep|going|at|it|with|that|looks|alright|right|next|do|now|lgtm|sgtm|and|then|"
    r"ja|gut|weiter|passt|danke|bitte|oui|parfait|merci|vas|y|si|sí|vale|bien|gracias|"
    r"はい|お願いします|続けてください|好|好的|继续|可以|嗯|谢谢)(?:\W+|$))+",
    re.IGNORECASE,
)
"""Nothing but assent."""
