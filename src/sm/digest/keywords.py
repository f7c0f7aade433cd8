"""The few words with which most languages build rules, requests, decisions and asides, one line for each language.

They only rank what the structure has found: a text without any of them is ranked by who said it, where and at what
length, and is never left out because it has none of them. Keep the lists short.
"""

from __future__ import annotations

import re


def cue(*languages: str, anywhere: str = "", pattern: str = "") -> re.Pattern[str]:
    """Whole words, `|` between them; `anywhere` for scripts without spaces, `pattern` for more than words."""
    parts = [rf"\b(?:{words})\b" for words in languages]
    return re.compile("|".join(filter(None, (*parts, anywhere, pattern))), re.IGNORECASE)


STRONG = cue(
    r"must(?!\s+(?:have|be because))|mustn'?t|never(?! (?:before|knew|mind))|always|do not|forbidden|off limits",
    r"hands off",
    r"leave (?:\w+ ){1,4}alone|nothing (?:gets|is|goes|may|will)",
    r"from now on|(?<!\bi )(?<!\bwe )(?<!\bthey )don'?t(?! (?:know|think|care|mind|worry))|make sure|ensure",
    r"not allowed",
    r"(?<!\bi )(?<!\bwe )(?:has|have|needs?) to (?:be|stay|keep|remain|work|load|go|come|win)|read-only|is law|no-go",
    r"nie|niemals|immer|kein(?:e[nmrs]?)?|muss|müssen|darf|dürfen|soll(?:en)? nicht|verboten|tabu",
    r"auf keinen fall|nichts (?:an|ändern|davon|in|löschen|unter)|(?:wird|geht|fass\w*|ändere?) nichts",
    r"jamais|toujours|il ne faut|doit|doivent|interdit|aucune?|nunca|siempre|jamás|debe|deben|prohibido",
    r"ningun[oa]?|ningún",
    r"mai|sempre|deve|devono|vietato|nessun[oa]?|nooit|altijd|moet|geen|apenas|nenhum[a]?",
    r"никогда|всегда|нельзя|запрещено|должны?|должен",
    anywhere="必ず|ないで|禁止|ないこと|てはいけ|必须|务必|不得|不要|禁止|只能|一律|반드시|금지",
    pattern=r"(?:^|[,;:.(] ?|\b(?:and|but|und|aber|please|y) )(?:no (?!longer|action|"
    r"news|comment|worries|problem|idea|rush|hurry|one|need|matter|wonder|doubt|way|luck|"
    r"pressure)|only |nur |solo |sólo |seulement |keep )\w|^[\w./+-]+,? not [\w./+-]+\W*$",
)
"""Rules almost surely, whatever is around them."""
RULE = cue(
    r"only|not|nor|cannot|can'?t|won'?t|should(?:n'?t)?|shall|nothing|none|nobody|keeps?|stays?|remains?|avoid|without",
    r"unless|until|till|every(?:thing|where)?|each|all|any(?:thing|where|one|body)?|at (?:most|least)",
    r"no more than|below",
    r"under|within|instead|rather|before|after|ask (?:me|before|first)|as (?:it|they) (?:is|are|was|were)|alone",
    r"exactly",
    r"has to|have to|needs? to|stick|survives?|compat\w*|freeze|frozen|limit\w*|max(?:imum)?|min(?:imum)?|allowed|use",
    r"nichts?|nur|bleib\w*|stets|bevor|statt|jede[rns]?|alle[rns]?|soll\w*|frag mich|genau|gesetzt|erst|ohne|höchstens",
    r"ne|pas|sans|seulement|garde\w*|avant|chaque|tous|toutes|no|solo|sólo|sin|antes|cada|todo[s]?|hay que|tiene que",
    r"senza|prima|ogni|tutti|niet|alleen|voor|zonder|sem|antes|não|не|только|без",
    anywhere="ください|のみ|だけ|まま|不要|以外|前に|未満|以内|残して|别|不能|保持|之前",
)
"""Words that rules are built with, and much else: one of them alone says nothing."""
REQUEST = cue(
    r"please|can you|could you|would you|will you|i(?:'d| would) like|i want|i need|we need|we should|let'?s",
    r"your (?:task|job)|bitte|ich (?:möchte|brauche|will)|je veux|il faut|quiero|necesito|por favor|s'il (?:te|vous)",
    anywhere="してください|たい|お願い|请|帮我",
    pattern=r"^\W{0,4}(?:now |then |next |and |also |so )*(?:re|un)?(?:add|"
    r"build|create|write|implement|make|find|fix|get|give|look|"
    r"go|investigate|review|check|split|move|rename|refactor|remove|replace|migrate|update|design|compare|pull|extract|"
    r"port|change|convert|turn|set up|introduce|extend|support|teach|rework|figure|work|use|stop|revert|undo|commit|"
    r"push|"
    r"run|rerun|try|skip|put|show|tell|drop|delete|merge|rebase|start|test|clean|restore|bump|tag|release|document|"
    r"explain|mach|schreib|bau|füge|ändere|prüfe|nimm|schau|zeig|lösch|haz|añade|agrega|quita|usa|cambia|revisa|"
    r"ajoute|fais|supprime|corrige|vérifie)\b",
)
SHIFT = cue(
    r"change of plans?|new (?:plan|direction|goal|task|topic|job)|plans? (?:has|have) changed|hold on|something else",
    r"forget (?:that|this|it|the|about|what)|drop (?:that|this|it)|scrap|(?:new|other|different) priorit\w+|redirect",
    r"priorit\w+ (?:has|have)? ?(?:changed|shifted)|different (?:thing|topic|task)|moving on|parked|on hold|set aside",
    r"p(?:ark|ut) (?:that|this|it)|another (?:topic|thing|task)|more (?:urgent|important)|turn to",
    r"leave (?:that|this|it) (?:for|at)|planänderung|halt|stopp|stattdessen|vorrang|jetzt|neues thema|als nächstes",
    r"plutôt|maintenant|arrête\w*|changement|ahora|cambio|mejor|para",
    anywhere="予定変更|方針変更|変わりました|止めて|代わり|優先|次は|计划有变|改变计划|先停|改为|现在",
    pattern=r"^\W{0,4}(?:\w{1,30}\W{1,4}){0,3}(?:instead|stop|halt|wait|next|now)\b",
)
CHOICE = cue(
    r"decid\w*|decision|chose|chosen|choos\w*|choice|go(?:ing)? (?:with|for)|went with|opt(?:ed|ing)?|settl\w+|pick\w*",
    r"prefer\w*|adopt\w*|verdict|conclu\w+|use|keep|kept|stay with|stick\w* (?:with|to)",
    r"stayed with|replac\w+|switch\w*",
    r"me quedo|prefiero|escojo|je prends|je garde|scelgo",
    r"i'd rather|take back|took|moved? to|turned down|wähle|behalte|ersetz\w+|umgestellt|bleibt|uso|usamos|utilis\w+",
    r"entscheid\w*|entschied\w*|entschluss|nehme|bleibe|wähle|gewählt|décid\w*|choisi\w*|eleg\w+|scelt\w+",
    anywhere="決定|採用|選|决定|采用|选择",
)
CONTRAST = cue(
    r"instead|rather than|over|not|versus|vs|than|ruled out|is out|are out|drop\w*|reject\w*|discard\w*|against|beats?",
    r"y no|et pas|e non|favou?r|statt|anstatt|nicht|gegen|scheidet|plutôt|au lieu|pas|en vez",
    anywhere="ではなく|より|見送|而不是|不用",
)
CHOSEN_OVER = cue(
    r"rather than|instead of|in place of|over the|statt|anstatt|anstelle|plutôt que|au lieu de?|en vez de|en lugar de",
    r"invece di|em vez de|вместо",
    anywhere="ではなく|代わりに|より|而不是|而非",
)
"""What is chosen and what is not, in one sentence."""
OWN = cue(
    r"i|we|i'\w+|we'\w+|ich|wir|je|j'\w+|nous|yo|me|decision|decisión|décision|entscheidung|io|noi",
    anywhere="決定|决定",
)
"""The speaker has decided."""
PASSIVE = cue(
    r"(?:is|are|was|were|been|being|be|wird|wurden?|war|waren|est|sont|fue|fueron)\s+(?:\w+\s+){0,2}"
    r"(?:decided|chosen|used|kept|picked|settled|called|looked|gewählt|entschieden|benutzt|"
    r"décidé|choisi|decidid\w+|usad\w+)"
)
"""It is so, without saying who decided."""
BECAUSE = cue(
    r"because|since(?! (?:the|then|\w+ \d|\d))|reason|so that|due to|otherwise|weil|damit|denn|sonst|parce que|puisque",
    r"pour que|porque|ya que|para que|così che|perché|want|omdat|потому",
    anywhere="ため|から|ので|理由|因为|由于|以便",
    pattern=r", (?:da|car|sino)\b",
)
"""Almost always a reason."""
PURPOSE = cue(pattern=r", so (?:that )?\w+ (?:can|could|will|would|may|need)|, (?:damit|para que|pour que|así) ")
REASON = cue(
    r"because|since|reason\w*|so that|due to|as|otherwise|given|would|so",
    r"weil|da|denn|damit|grund|wegen|parce|car|puisque|porque|ya que|perché",
    anywhere="ため|から|理由|ので|因为|由于",
)
CAUSE = cue(r"root cause|the cause|ursache|cause racine|causa", anywhere="原因")
FOUND = cue(
    r"root cause|cause[ds]?|turns? out|culprit|found|finding|bug|blocking|blocker|confirmed|measured|risk|explains?",
    r"ursache|grund|liegt an|fehler",
    anywhere="原因",
    pattern=r"(?<![\w/-])[\w/-]{1,200}\.\w{1,5}:\d",
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
"""English alone: in other languages a narrative is recognised by its length and its closing nod."""
OPTIONS = cue(
    r"options?|or|either|alternatives?|oder|entweder|ou|soit|o|opciones", anywhere="或者|还是|または|それとも"
)
"""Leaves a choice to the reader."""
TELLING = cue(
    r"i (?:have|need|want|think|thought|guess|like|love|feel|hope|am|will|go)|i'(?:m|ll|d|ve)",
    r"tell me|find out|background",
    r"this is (?:what|how)|ich (?:muss|habe|bin|denke|glaube|gehe)|je (?:dois|suis|pense)|tengo que|creo",
)
"""The speaker talks about themselves, or asks for information."""
ASIDE = cue(
    r"thanks?|thank you|nice|interesting|by the way|btw|fyi|for your information|anyway|go on|carry on|go ahead",
    r"continue|on our side|no bearing|nothing to do|another matter|outside of",
)
LOOKING = cue(
    pattern=r"^(?:ok(?:ay)?[,.]? |good[,.]? |right[,.]? )?(?:let me|let's (?:see|look|check)|i'?ll|i will|now|looking|"
    r"checking|reading|running|adjusting|one more|that matches|next,? (?:the|i))\b",
)
MARKS = re.compile(r"[`/_\\]|\d|\b[a-z]+[A-Z]\w+")
"""Exact names: paths, numbers, code."""
NODS = re.compile(
    r"(?:(?:ok|okay|k|yes|yep|yup|yeah|sure|fine|good|great|nice|cool|perfect|thanks|thank|you|please|go|on|ahead|continue|"
    r"proceed|carry|keep|going|at|it|with|that|looks|alright|right|next|do|now|lgtm|sgtm|and|then|"
    r"ja|gut|weiter|passt|danke|bitte|oui|parfait|merci|vas|y|si|sí|vale|bien|gracias|"
    r"はい|お願いします|続けてください|好|好的|继续|可以|嗯|谢谢)(?:\W+|$))+",
    re.IGNORECASE,
)
"""Assent and nothing else."""
