# ruff: noqa: E501  # each expression of the table is a line
"""Secrets that have no form of their own: the words before them show what they are.

After a word as `password` the value decides: a type, a placeholder, a variable or a plain word is no secret. A file or
a shell that assigns needs less evidence than a sentence.
"""

from __future__ import annotations

from sm.archive.redaction.patterns import secret_pattern
from sm.archive.redaction.values import is_env_key, is_keyed, is_login, is_quoted_password, is_strong, is_value

PHRASES = r"pass(?:word|wd|phrase|code|wort)?s?|pwd?|pswd|passwort|kennwort|kenwort|losungswort|contraseña|motdepasse"
KEY_WORDS = (
    r"(?:secret|token|api[_-]?key|apikey|auth[_-]?key|access[_-]?key|account[_-]?key|private[_-]?key|secret[_-]?key(?:[_-]base)?|"
    r"signing[_-]?key|preshared[_-]?key|encryption[_-]?key|master[_-]?key|shared[_-]?key|license[_-]?key|client[_-]?secret|credentials?|"
    r"auth[_-]?token|access[_-]?token|refresh[_-]?token|session[_-]?id|webhook[_-]?secret|app[_-]?secret)"
)
PHRASE_LITERALS = "passw|passp|passc|passe|pass=|pass:|pass |pass\"|pass'|pwd|pw|pswd|wort|contraseña"
FOREIGN_PHRASES = r"mot de passe|senha|wachtwoord|lösenord|hasło|[Пп]ароль|密码|密碼|パスワード|비밀번호"
FOREIGN_LITERALS = "mot de passe|senha|wachtwoord|lösenord|hasło|пароль|密码|密碼|パスワード|비밀번호"
KEY_LITERALS = "secret|token|key|credential|session"
PROGRAM_LITERALS = "SSHPASS|DBPASS|PGPASS|MYSQLPASS|SMTPPASS|SUDOPASS|ROOTPASS|ADMINPASS|KEYPASS|STOREPASS|MAILPASS"
ANY_LITERALS = f"{PHRASE_LITERALS}|{KEY_LITERALS}|pin"
"""One of these is in every word below, in lower case: the test that is made before any expression runs."""
WORD_START = r"(?<![A-Za-z0-9])"
HUMP_START = r"(?<=[a-z0-9])"
NAME_PREFIX = r"(?:[A-Za-z0-9_.-]{0,40}[_.-])?"
CLOSING_QUOTE = r"\\?[\"'`\]]{0,2}"
ASSIGNMENT = r"[ \t]{0,4}(?:=>|:=|\?=|[=:])[ \t]{0,4}"
OPENING_QUOTE = r"(?P<quote>\\?[\"'`])"
QUOTED_VALUE = OPENING_QUOTE + r"(?P<secret>[^\"'`\s\\]{3,300})(?P=quote)"
BARE_VALUE = r"(?P<secret>[^\s\"'`<>(){}\[\],;|&]{3,300})"
LINE_START = r"(?:^|(?<=\\n)|(?<=\n))[ \t>│|+-]{0,24}(?:export[ \t]+|set[ \t]+|ENV[ \t]+|- )?[\"']?"
VALUE_END = r"(?=[ \t]*(?:[,;]?[ \t]*(?:\\n|\n|\r|$)|[ \t]#))"

COPULA = r"(?:is|was|=|:|lautet|ist|war|heißt|to|auf|es|est)"
OWNER = r"(?:[ \t]+(?:for|of|für|von|vom|zu|zum|zur|on|am|im|in|de)\b(?:[ \t]+[^\s:=]{1,40}){1,4}?)?"
ADVERB = r"(?:[ \t]+(?:still|now|just|also|currently|jetzt|noch|aktuell|immer|das))?"
SPOKEN_VALUE = r"[\"'`„“”»]{0,2}(?P<secret>[^\s\"'`„“”»]{4,120})"

ASSIGNMENT_PATTERNS = (
    secret_pattern("assigned", PHRASE_LITERALS, rf"{WORD_START}(?:{PHRASES}){CLOSING_QUOTE}{ASSIGNMENT}{QUOTED_VALUE}", accepts=is_quoted_password),
    secret_pattern("assigned", "Password|Passwd|Passphrase|Pwd", rf"{HUMP_START}(?:Password|Passwd|Passphrase|Pwd)\d?{CLOSING_QUOTE}{ASSIGNMENT}{QUOTED_VALUE}", folded=False, accepts=is_quoted_password),
    secret_pattern("assigned", PHRASE_LITERALS, rf"(?m:{LINE_START}){NAME_PREFIX}(?:{PHRASES}){CLOSING_QUOTE}{ASSIGNMENT}{BARE_VALUE}{VALUE_END}", accepts=is_value),
    secret_pattern("assigned", PHRASE_LITERALS, rf"{WORD_START}(?:{PHRASES}){CLOSING_QUOTE}(?:=|[ \t]?[:=][ \t]{{0,4}}){BARE_VALUE}", accepts=is_strong),
    secret_pattern("assigned", PHRASE_LITERALS, r"(?<![A-Za-z0-9-])(?:password|passwd|pwd)=(?P<secret>[^\s\"'`<>(){}\[\],;|&]{4,200})(?=[ \t]+\w+=|;)", accepts=is_value),
    secret_pattern("assigned", KEY_LITERALS, rf"{WORD_START}{KEY_WORDS}{CLOSING_QUOTE}{ASSIGNMENT}(?:{OPENING_QUOTE}(?P<secret>[^\"'`\s\\]{{8,400}})(?P=quote))", accepts=is_keyed),
    secret_pattern("assigned", KEY_LITERALS, rf"{WORD_START}{KEY_WORDS}{CLOSING_QUOTE}{ASSIGNMENT}(?P<secret>[^\s\"'`<>(){{}}\[\],;|&]{{8,400}})", accepts=is_keyed),
    secret_pattern("assigned", "Secret|Token|Key", rf"{HUMP_START}(?<!PublicKey)(?:Secret|Token|ApiKey|AccessKey|PrivateKey|SecretKey|AuthKey){CLOSING_QUOTE}{ASSIGNMENT}\\?[\"'`]?(?P<secret>[^\s\"'`<>(){{}}\[\],;|&]{{8,400}})", folded=False, accepts=is_keyed),
    secret_pattern("assigned", "_KEY|_PASS|_AUTH|_PW|_CREDENTIALS|_DSN|_SALT", r"(?<=[A-Z0-9])_(?:KEY|PASS|AUTH|PW|SALT|CREDENTIALS?)[\"']?[ ]?[=:][ ]?[\"']?(?P<secret>[^\s\"'`<>(){}\[\],;|&]{6,400})", folded=False, accepts=is_env_key),
    secret_pattern("header", "-key|-token|api-key|apikey", r"(?<![A-Za-z0-9])(?:api-?key|token|secret|key)[\"']?[ \t]*:[ \t]*[\"']?(?P<secret>[A-Za-z0-9._~+/=-]{12,400})", accepts=is_keyed),
    secret_pattern("cookie", "cookie", r"(?<![A-Za-z0-9])(?:set-)?cookie[\"']?[ \t]*[:=][ \t]*[\"']?(?P<secret>(?![<$({\[])[^\s=\"';]{1,80}=(?![<$({\[])[^\n\"']{6,2000})", folded=True),
    secret_pattern("cookie", "--cookie|-b ", r"(?<![\w-])(?:--cookie|-b)[ =][\"']?(?P<secret>(?!\$)[\w.-]{1,60}=(?!\$)[^\s\"';]{8,500})", folded=True),
    secret_pattern("authorization", "authorization", r"\b(?:proxy-)?authorization[\"']?\s{0,3}[:=]\s{0,3}[\"']?(?:(?:basic|bearer|token|apikey|api-key|key|digest|splunk|bot|negotiate)[ =])?[\"']?(?P<secret>[\w.~+/=:-]{8,2000})", accepts=is_keyed),
    secret_pattern("authorization", "bearer|basic", r"\b(?:bearer|basic)[ \t]+(?P<secret>[\w.~+/=-]{12,2000})", accepts=is_env_key),
    secret_pattern("login", "-u|--user|-a |-U ", r"(?<![\w-])(?:(?<!push )(?<!run )(?<!exec )-u|--user|--proxy-user|(?<=curl )-U|(?<=http )-a|(?<=https )-a)[ =]?[\"']?[^\s:\"'$/]{1,80}[:%](?P<secret>(?!\$|<|//)[^\s\"']{3,200})", accepts=is_login),
    secret_pattern("password", "mysql|mariadb", r"\b(?:mysql\w{0,12}|mariadb\w{0,8}|mysqldump|mysqladmin)\b[^\n|;&]{0,200}?[ \t]-p[\"']?(?P<secret>(?!\$)[^\s\"'|;&]{3,200})", folded=False, accepts=is_value),
    secret_pattern("password", "sshpass", r"\bsshpass[ \t]{1,4}-p[ \t]{0,4}[\"']?(?P<secret>(?!\$)[^\s\"'|;&]{3,200})", accepts=is_value),
    secret_pattern("password", "docker |podman |helm |oc |az |redis-cli|mongo|ldap|kinit|curl|zip|7z|rclone|vault ", r"\b(?:(?:docker|podman|helm(?:[ \t]registry)?|oc|skopeo|buildah|az|vault)[ \t]login|mongo\w{0,8}|redis-cli|ldap\w{1,12}|zip|unzip|7z[ \t][ax])\b[^\n|;&]{0,200}?[ \t]-(?:p|P|a|w)[ \t]{0,4}[\"']?(?P<secret>(?!\$)[^\s\"'|;&]{4,200})", folded=False, accepts=is_strong),
    secret_pattern("password", "--pass|--token|--secret|--api|--access|--auth|--pw|--client-secret", r"(?<![\w-])--(?:[a-z]{1,12}-){0,3}(?:password|passwd|passphrase|pass|pw|token|secret|api-?key|access-key|secret-key|auth-key)[ \t=]{1,4}[\"']?(?P<secret>(?!\$|-|<)[^\s\"'|;&]{4,400})", accepts=is_strong),
    secret_pattern("password", "pass:", r"(?<![\w-])-pass(?:in|out)?[ \t]{1,4}[\"']?pass:(?P<secret>(?!\$)[^\s\"']{3,200})", accepts=is_value),
    secret_pattern("password", "password|echo", r"\becho[ \t]{1,3}(?:-n[ \t])?[\"']?(?P<secret>(?!\$)[^\s\"'|]{4,200})[\"']?[ \t]{0,3}\|[ \t]{0,3}(?:sudo[ \t]+-S|[^\n|]{1,120}--password-stdin|[^\n|]{0,40}passwd\b)", accepts=is_value),
    secret_pattern("password", "machine|login", r"\bmachine\s{1,8}\S{1,200}\s{1,8}login\s{1,8}\S{1,200}\s{1,8}password\s{1,8}(?P<secret>\S{3,200})", accepts=is_value),
    secret_pattern("password", "identified by", r"\bidentified[ \t]+(?:with[ \t]+\S{1,40}[ \t]+)?by[ \t]+[\"'](?P<secret>[^\"'\n]{3,200})[\"']", accepts=is_value),
    secret_pattern("password", "password", r"\b(?:with|set|encrypted)[ \t]+password[ \t]+[\"'](?P<secret>[^\"'\n]{3,200})[\"']", accepts=is_value),
    secret_pattern("password", ANY_LITERALS, rf"(?<![\w-])(?:{PHRASES}|pin|{KEY_WORDS}|api key|access key|secret key|passwort|key)\b{OWNER}{ADVERB}[ \t]+{COPULA}{ADVERB}[ \t]*[:=]?[ \t]*{SPOKEN_VALUE}", accepts=is_strong),
    secret_pattern("password", PHRASE_LITERALS, rf"(?<![\w-])(?:{PHRASES})[ \t]{{1,3}}{SPOKEN_VALUE}", accepts=is_strong),
    secret_pattern("password", "credential|login|zugang|anmeld", r"\b(?:credentials?|logins?|log[ \t]in|zugangsdaten|anmeldung|anmelden)\b[^\n.:]{0,40}?(?::|[ \t](?:are|is|with|as|mit|sind|als))[ \t]*[\"'`]?[\w.@-]{2,60}[ \t]?[:/][ \t]?[\"'`]?(?P<secret>[^\s\"'`]{4,120})", accepts=is_strong),
    secret_pattern("login", "-U ", r"(?<![\w-])-U[ =]?[\"']?[^\s:%\"'$/]{1,80}%(?P<secret>(?!\$|<)[^\s\"']{3,200})", accepts=is_login, folded=False),
    secret_pattern("login", "_AUTH", r"(?<=[A-Z0-9])_AUTH[\"']?[ ]?[=:][ ]?[\"']?[\w.@-]{1,60}:(?P<secret>(?!\$)[^\s\"']{4,200})", accepts=is_strong, folded=False),
    secret_pattern("assigned", PROGRAM_LITERALS, rf"(?:{PROGRAM_LITERALS})=[\"']?(?P<secret>(?!\$)[^\s\"';&|]{{3,200}})", accepts=is_value, folded=False),
    secret_pattern("assigned", "key-data", r"\bclient-key-data[\"']?[ \t]{0,4}:[ \t]{0,4}[\"']?(?P<secret>[A-Za-z0-9+/=]{20,20000})", folded=True),
    secret_pattern("assigned", "password>|passphrase>|passwd>", r"<(?:[\w.:-]{0,40}[.:_-])?(?:password|passwd|passphrase)>(?P<secret>[^\s<>]{3,300})</", accepts=is_value),
    secret_pattern("assigned", "secret>|token>|key>", r"<(?:[\w.:-]{0,40}[.:_-])?(?:secret|token|api-?key|secret-?key|access-?key|private-?key)>(?P<secret>[^\s<>]{8,400})</", accepts=is_keyed),
    secret_pattern("assigned", "value", r"\b(?:name|key)[\"']?[ \t]?[:=][ \t]?[\"']?[\w.-]{0,60}(?:password|passwd|passphrase)[\"']?[ \t]?,?\s{1,60}[\"']?value[\"']?[ \t]?[:=][ \t]?[\"']?(?P<secret>[^\s\"'<>,]{3,300})", accepts=is_value),
    secret_pattern("assigned", "value", r"\b(?:name|key)[\"']?[ \t]?[:=][ \t]?[\"']?[\w.-]{0,60}(?:secret|token|api_?key|access_?key|private_?key|secret_?key)[\"']?[ \t]?,?\s{1,60}[\"']?value[\"']?[ \t]?[:=][ \t]?[\"']?(?P<secret>[^\s\"'<>,]{8,400})", accepts=is_keyed),
    secret_pattern("assigned", "setenv|set ", r"\b(?:setenv|set[ \t]-[a-zA-Z]{1,4}|config(?:ure)?[ \t]set)[ \t]{1,4}[\w.:/@-]{0,80}(?:key|token|secret|password|passwd|_auth)[ \t=]{1,4}[\"']?(?P<secret>(?!\$|-)[^\s\"';&|]{8,400})", accepts=is_strong),
    secret_pattern("assigned", "psk", rf"{WORD_START}(?:wpa[_-]?)?psk[ \t]?=[ \t]?{QUOTED_VALUE}", accepts=is_quoted_password),
    secret_pattern("password", "htpasswd", r"\bhtpasswd[ \t]+-[a-zA-Z]{0,6}b[a-zA-Z]{0,6}[ \t]+(?:-\S{1,20}[ \t]+){0,3}\S{1,200}[ \t]+\S{1,80}[ \t]+[\"']?(?P<secret>(?!\$)[^\s\"'|;&]{3,200})", accepts=is_value),
    secret_pattern("password", "openssl", r"\bopenssl[ \t][^\n|;&]{0,200}?[ \t]-k[ \t]{1,4}[\"']?(?P<secret>(?!\$)[^\s\"'|;&]{3,200})", accepts=is_value),
    secret_pattern("password", ":", r"(?<![\w.:/*-])[A-Za-z0-9.*_-]{1,80}:(?:\d{4,5}|\*):[\w*-]{1,60}:[\w*-]{1,60}:(?P<secret>[^\s:\"']{4,120})(?![^\s])", accepts=is_strong),
    secret_pattern("password", FOREIGN_LITERALS, rf"(?:{FOREIGN_PHRASES})[ \t]{{0,3}}(?:[:\uff1a=是はé-]|est\b|é\b|is\b|это|jest\b|är\b)?[ \t]{{0,3}}{SPOKEN_VALUE}", accepts=is_strong),
)  # fmt: skip
"""Some match sentences, most of them English and German."""
