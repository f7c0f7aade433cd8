# ruff: noqa: E501  # each expression of the table is a line
"""Secrets that have no shape of their own: what stands before them tells what they are.

Behind a word as `password` the value decides: a type, a placeholder, a variable or a plain word is none. The bar is
lower where a file or a shell assigns than where people write sentences.
"""

from __future__ import annotations

from sm.archive.redaction.patterns import shape
from sm.archive.redaction.values import is_env_key, is_keyed, is_login, is_quoted_password, is_strong, is_value

PHRASES = r"pass(?:word|wd|phrase|code|wort)?s?|pwd?|pswd|passwort|kennwort|kenwort|losungswort|contraseña|motdepasse"
KEYED = (
    r"(?:secret|token|api[_-]?key|apikey|auth[_-]?key|access[_-]?key|account[_-]?key|private[_-]?key|secret[_-]?key(?:[_-]base)?|"
    r"signing[_-]?key|preshared[_-]?key|encryption[_-]?key|master[_-]?key|shared[_-]?key|license[_-]?key|client[_-]?secret|credentials?|"
    r"auth[_-]?token|access[_-]?token|refresh[_-]?token|session[_-]?id|webhook[_-]?secret|app[_-]?secret)"
)
OF_PHRASES = "passw|passp|passc|passe|pass=|pass:|pass |pass\"|pass'|pwd|pw|pswd|wort|contraseña"
FOREIGN = r"mot de passe|senha|wachtwoord|lösenord|hasło|[Пп]ароль|密码|密碼|パスワード|비밀번호"
OF_FOREIGN = "mot de passe|senha|wachtwoord|lösenord|hasło|пароль|密码|密碼|パスワード|비밀번호"
OF_KEYS = "secret|token|key|credential|session"
OF_PROGRAMS = "SSHPASS|DBPASS|PGPASS|MYSQLPASS|SMTPPASS|SUDOPASS|ROOTPASS|ADMINPASS|KEYPASS|STOREPASS|MAILPASS"
ANY = f"{OF_PHRASES}|{OF_KEYS}|pin"
"""One of these is in every word below, in lower case."""
BEFORE = r"(?<![A-Za-z0-9])"
CAMEL = r"(?<=[a-z0-9])"
NAMED = r"(?:[A-Za-z0-9_.-]{0,40}[_.-])?"
CLOSE = r"\\?[\"'`\]]{0,2}"
SET = r"[ \t]{0,4}(?:=>|:=|\?=|[=:])[ \t]{0,4}"
OPEN = r"(?P<quote>\\?[\"'`])"
QUOTED = OPEN + r"(?P<secret>[^\"'`\s\\]{3,300})(?P=quote)"
BARE = r"(?P<secret>[^\s\"'`<>(){}\[\],;|&]{3,300})"
LINE = r"(?:^|(?<=\\n)|(?<=\n))[ \t>│|+-]{0,24}(?:export[ \t]+|set[ \t]+|ENV[ \t]+|- )?[\"']?"
END = r"(?=[ \t]*(?:[,;]?[ \t]*(?:\\n|\n|\r|$)|[ \t]#))"

IS = r"(?:is|was|=|:|lautet|ist|war|heißt|to|auf|es|est)"
WHOSE = r"(?:[ \t]+(?:for|of|für|von|vom|zu|zum|zur|on|am|im|in|de)\b(?:[ \t]+[^\s:=]{1,40}){1,4}?)?"
STILL = r"(?:[ \t]+(?:still|now|just|also|currently|jetzt|noch|aktuell|immer|das))?"
MARKED = r"[\"'`„“”»]{0,2}(?P<secret>[^\s\"'`„“”»]{4,120})"

GIVEN = (
    shape("assigned", OF_PHRASES, rf"{BEFORE}(?:{PHRASES}){CLOSE}{SET}{QUOTED}", accepts=is_quoted_password),
    shape("assigned", "Password|Passwd|Passphrase|Pwd", rf"{CAMEL}(?:Password|Passwd|Passphrase|Pwd)\d?{CLOSE}{SET}{QUOTED}", folded=False, accepts=is_quoted_password),
    shape("assigned", OF_PHRASES, rf"(?m:{LINE}){NAMED}(?:{PHRASES}){CLOSE}{SET}{BARE}{END}", accepts=is_value),
    shape("assigned", OF_PHRASES, rf"{BEFORE}(?:{PHRASES}){CLOSE}(?:=|[ \t]?[:=][ \t]{{0,4}}){BARE}", accepts=is_strong),
    shape("assigned", OF_PHRASES, r"(?<![A-Za-z0-9-])(?:password|passwd|pwd)=(?P<secret>[^\s\"'`<>(){}\[\],;|&]{4,200})(?=[ \t]+\w+=|;)", accepts=is_value),
    shape("assigned", OF_KEYS, rf"{BEFORE}{KEYED}{CLOSE}{SET}(?:{OPEN}(?P<secret>[^\"'`\s\\]{{8,400}})(?P=quote))", accepts=is_keyed),
    shape("assigned", OF_KEYS, rf"{BEFORE}{KEYED}{CLOSE}{SET}(?P<secret>[^\s\"'`<>(){{}}\[\],;|&]{{8,400}})", accepts=is_keyed),
    shape("assigned", "Secret|Token|Key", rf"{CAMEL}(?<!PublicKey)(?:Secret|Token|ApiKey|AccessKey|PrivateKey|SecretKey|AuthKey){CLOSE}{SET}\\?[\"'`]?(?P<secret>[^\s\"'`<>(){{}}\[\],;|&]{{8,400}})", folded=False, accepts=is_keyed),
    shape("assigned", "_KEY|_PASS|_AUTH|_PW|_CREDENTIALS|_DSN|_SALT", r"(?<=[A-Z0-9])_(?:KEY|PASS|AUTH|PW|SALT|CREDENTIALS?)[\"']?[ ]?[=:][ ]?[\"']?(?P<secret>[^\s\"'`<>(){}\[\],;|&]{6,400})", folded=False, accepts=is_env_key),
    shape("header", "-key|-token|api-key|apikey", r"(?<![A-Za-z0-9])(?:api-?key|token|secret|key)[\"']?[ \t]*:[ \t]*[\"']?(?P<secret>[A-Za-z0-9._~+/=-]{12,400})", accepts=is_keyed),
    shape("cookie", "cookie", r"(?<![A-Za-z0-9])(?:set-)?cookie[\"']?[ \t]*[:=][ \t]*[\"']?(?P<secret>(?![<$({\[])[^\s=\"';]{1,80}=(?![<$({\[])[^\n\"']{6,2000})", folded=True),
    shape("cookie", "--cookie|-b ", r"(?<![\w-])(?:--cookie|-b)[ =][\"']?(?P<secret>(?!\$)[\w.-]{1,60}=(?!\$)[^\s\"';]{8,500})", folded=True),
    shape("authorization", "authorization", r"\b(?:proxy-)?authorization[\"']?\s{0,3}[:=]\s{0,3}[\"']?(?:(?:basic|bearer|token|apikey|api-key|key|digest|splunk|bot|negotiate)[ =])?[\"']?(?P<secret>[\w.~+/=:-]{8,2000})", accepts=is_keyed),
    shape("authorization", "bearer|basic", r"\b(?:bearer|basic)[ \t]+(?P<secret>[\w.~+/=-]{12,2000})", accepts=is_env_key),
    shape("login", "-u|--user|-a |-U ", r"(?<![\w-])(?:(?<!push )(?<!run )(?<!exec )-u|--user|--proxy-user|(?<=curl )-U|(?<=http )-a|(?<=https )-a)[ =]?[\"']?[^\s:\"'$/]{1,80}[:%](?P<secret>(?!\$|<|//)[^\s\"']{3,200})", accepts=is_login),
    shape("password", "mysql|mariadb", r"\b(?:mysql\w{0,12}|mariadb\w{0,8}|mysqldump|mysqladmin)\b[^\n|;&]{0,200}?[ \t]-p[\"']?(?P<secret>(?!\$)[^\s\"'|;&]{3,200})", folded=False, accepts=is_value),
    shape("password", "sshpass", r"\bsshpass[ \t]{1,4}-p[ \t]{0,4}[\"']?(?P<secret>(?!\$)[^\s\"'|;&]{3,200})", accepts=is_value),
    shape("password", "docker |podman |helm |oc |az |redis-cli|mongo|ldap|kinit|curl|zip|7z|rclone|vault ", r"\b(?:(?:docker|podman|helm(?:[ \t]registry)?|oc|skopeo|buildah|az|vault)[ \t]login|mongo\w{0,8}|redis-cli|ldap\w{1,12}|zip|unzip|7z[ \t][ax])\b[^\n|;&]{0,200}?[ \t]-(?:p|P|a|w)[ \t]{0,4}[\"']?(?P<secret>(?!\$)[^\s\"'|;&]{4,200})", folded=False, accepts=is_strong),
    shape("password", "--pass|--token|--secret|--api|--access|--auth|--pw|--client-secret", r"(?<![\w-])--(?:[a-z]{1,12}-){0,3}(?:password|passwd|passphrase|pass|pw|token|secret|api-?key|access-key|secret-key|auth-key)[ \t=]{1,4}[\"']?(?P<secret>(?!\$|-|<)[^\s\"'|;&]{4,400})", accepts=is_strong),
    shape("password", "pass:", r"(?<![\w-])-pass(?:in|out)?[ \t]{1,4}[\"']?pass:(?P<secret>(?!\$)[^\s\"']{3,200})", accepts=is_value),
    shape("password", "password|echo", r"\becho[ \t]{1,3}(?:-n[ \t])?[\"']?(?P<secret>(?!\$)[^\s\"'|]{4,200})[\"']?[ \t]{0,3}\|[ \t]{0,3}(?:sudo[ \t]+-S|[^\n|]{1,120}--password-stdin|[^\n|]{0,40}passwd\b)", accepts=is_value),
    shape("password", "machine|login", r"\bmachine\s{1,8}\S{1,200}\s{1,8}login\s{1,8}\S{1,200}\s{1,8}password\s{1,8}(?P<secret>\S{3,200})", accepts=is_value),
    shape("password", "identified by", r"\bidentified[ \t]+(?:with[ \t]+\S{1,40}[ \t]+)?by[ \t]+[\"'](?P<secret>[^\"'\n]{3,200})[\"']", accepts=is_value),
    shape("password", "password", r"\b(?:with|set|encrypted)[ \t]+password[ \t]+[\"'](?P<secret>[^\"'\n]{3,200})[\"']", accepts=is_value),
    shape("password", ANY, rf"(?<![\w-])(?:{PHRASES}|pin|{KEYED}|api key|access key|secret key|passwort|key)\b{WHOSE}{STILL}[ \t]+{IS}{STILL}[ \t]*[:=]?[ \t]*{MARKED}", accepts=is_strong),
    shape("password", OF_PHRASES, rf"(?<![\w-])(?:{PHRASES})[ \t]{{1,3}}{MARKED}", accepts=is_strong),
    shape("password", "credential|login|zugang|anmeld", r"\b(?:credentials?|logins?|log[ \t]in|zugangsdaten|anmeldung|anmelden)\b[^\n.:]{0,40}?(?::|[ \t](?:are|is|with|as|mit|sind|als))[ \t]*[\"'`]?[\w.@-]{2,60}[ \t]?[:/][ \t]?[\"'`]?(?P<secret>[^\s\"'`]{4,120})", accepts=is_strong),
    shape("login", "-U ", r"(?<![\w-])-U[ =]?[\"']?[^\s:%\"'$/]{1,80}%(?P<secret>(?!\$|<)[^\s\"']{3,200})", accepts=is_login, folded=False),
    shape("login", "_AUTH", r"(?<=[A-Z0-9])_AUTH[\"']?[ ]?[=:][ ]?[\"']?[\w.@-]{1,60}:(?P<secret>(?!\$)[^\s\"']{4,200})", accepts=is_strong, folded=False),
    shape("assigned", OF_PROGRAMS, rf"(?:{OF_PROGRAMS})=[\"']?(?P<secret>(?!\$)[^\s\"';&|]{{3,200}})", accepts=is_value, folded=False),
    shape("assigned", "key-data", r"\bclient-key-data[\"']?[ \t]{0,4}:[ \t]{0,4}[\"']?(?P<secret>[A-Za-z0-9+/=]{20,20000})", folded=True),
    shape("assigned", "password>|passphrase>|passwd>", r"<(?:[\w.:-]{0,40}[.:_-])?(?:password|passwd|passphrase)>(?P<secret>[^\s<>]{3,300})</", accepts=is_value),
    shape("assigned", "secret>|token>|key>", r"<(?:[\w.:-]{0,40}[.:_-])?(?:secret|token|api-?key|secret-?key|access-?key|private-?key)>(?P<secret>[^\s<>]{8,400})</", accepts=is_keyed),
    shape("assigned", "value", r"\b(?:name|key)[\"']?[ \t]?[:=][ \t]?[\"']?[\w.-]{0,60}(?:password|passwd|passphrase)[\"']?[ \t]?,?\s{1,60}[\"']?value[\"']?[ \t]?[:=][ \t]?[\"']?(?P<secret>[^\s\"'<>,]{3,300})", accepts=is_value),
    shape("assigned", "value", r"\b(?:name|key)[\"']?[ \t]?[:=][ \t]?[\"']?[\w.-]{0,60}(?:secret|token|api_?key|access_?key|private_?key|secret_?key)[\"']?[ \t]?,?\s{1,60}[\"']?value[\"']?[ \t]?[:=][ \t]?[\"']?(?P<secret>[^\s\"'<>,]{8,400})", accepts=is_keyed),
    shape("assigned", "setenv|set ", r"\b(?:setenv|set[ \t]-[a-zA-Z]{1,4}|config(?:ure)?[ \t]set)[ \t]{1,4}[\w.:/@-]{0,80}(?:key|token|secret|password|passwd|_auth)[ \t=]{1,4}[\"']?(?P<secret>(?!\$|-)[^\s\"';&|]{8,400})", accepts=is_strong),
    shape("assigned", "psk", rf"{BEFORE}(?:wpa[_-]?)?psk[ \t]?=[ \t]?{QUOTED}", accepts=is_quoted_password),
    shape("password", "htpasswd", r"\bhtpasswd[ \t]+-[a-zA-Z]{0,6}b[a-zA-Z]{0,6}[ \t]+(?:-\S{1,20}[ \t]+){0,3}\S{1,200}[ \t]+\S{1,80}[ \t]+[\"']?(?P<secret>(?!\$)[^\s\"'|;&]{3,200})", accepts=is_value),
    shape("password", "openssl", r"\bopenssl[ \t][^\n|;&]{0,200}?[ \t]-k[ \t]{1,4}[\"']?(?P<secret>(?!\$)[^\s\"'|;&]{3,200})", accepts=is_value),
    shape("password", ":", r"(?<![\w.:/*-])[A-Za-z0-9.*_-]{1,80}:(?:\d{4,5}|\*):[\w*-]{1,60}:[\w*-]{1,60}:(?P<secret>[^\s:\"']{4,120})(?![^\s])", accepts=is_strong),
    shape("password", OF_FOREIGN, rf"(?:{FOREIGN})[ \t]{{0,3}}(?:[:\uff1a=是はé-]|est\b|é\b|is\b|это|jest\b|är\b)?[ \t]{{0,3}}{MARKED}", accepts=is_strong),
)  # fmt: skip
"""Some of them are of sentences, most in English and German."""
