# ruff: noqa: E501  # each expression of the table is a line
"""Tokens of services that begin with a prefix of their own.

After the rules of detect-secrets 1.5 and of the services' own pages; each is tried only where its prefix occurs.
"""

from __future__ import annotations

from sm.archive.redaction.patterns import END, START, SecretPattern, secret_pattern

PREFIXES = {
    "age-key": ("AGE-SECRET-KEY-1", r"[A-Z0-9]{20,}"),
    "airtable-token": ("pat", r"[A-Za-z0-9]{14}\.[0-9a-f]{40,}"),
    "alibaba-key": ("LTAI", r"[A-Za-z0-9]{16,26}" + END),
    "artifactory-token": ("AKCp", r"[A-Za-z0-9]{20,}"),
    "atlassian-token": ("ATATT3|ATBB|ATCTT3", r"[A-Za-z0-9_=-]{20,}"),
    "aws-key": ("ABIA|ACCA|ABSK", r"[A-Za-z0-9+/=]{16,}"),
    "clojars-token": ("CLOJARS_", r"[0-9a-f]{30,}"),
    "crates-token": ("cio", r"[A-Za-z0-9]{32}" + END),
    "databricks-token": ("dapi|dkea|dosea", r"[0-9a-f]{32}"),
    "digitalocean-token": ("dop_v1_|doo_v1_|dor_v1_|dos_v1_", r"[0-9a-f]{32,}"),
    "docker-token": ("dckr_pat_|dckr_oat_", r"[A-Za-z0-9_-]{20,}"),
    "doppler-token": ("dp.pt.|dp.st.|dp.ct.|dp.sa.", r"[A-Za-z0-9._-]{20,}"),
    "facebook-token": ("EAACEdEose0cBA|EAAG|EAAB", r"[A-Za-z0-9]{20,}"),
    "figma-token": ("figd_|figo_", r"[A-Za-z0-9_-]{20,}"),
    "fly-token": ("fm1_|fm2_|fm1r_|fm1a_|fo1_", r"[A-Za-z0-9+/=_-]{30,}"),
    "gitlab-token": ("gldt-|glft-|glsoat-|glrt-|glcbt-|glimt-|glptt-|glagent-|GR1348941", r"[A-Za-z0-9_-]{20,}"),
    "google-secret": ("GOCSPX-", r"[A-Za-z0-9_-]{20,}"),
    "grafana-token": ("glsa_|glc_", r"[A-Za-z0-9_+/=]{20,}"),
    "groq-key": ("gsk_", r"[A-Za-z0-9]{30,}"),
    "heroku-key": ("HRKU-", r"[A-Za-z0-9_-]{30,}"),
    "linear-key": ("lin_api_|lin_oauth_", r"[A-Za-z0-9]{20,}"),
    "mailgun-key": ("key-", r"(?=[a-z]{0,40}\d)[0-9a-z]{32}" + END),
    "netlify-token": ("nfp_", r"[A-Za-z0-9]{30,}"),
    "newrelic-key": ("NRAK-|NRII-|NRJS-|NRRA-", r"[A-Za-z0-9_-]{19,}"),
    "notion-token": ("secret_|ntn_", r"(?=[A-Za-z]{0,40}\d)[A-Za-z0-9]{40,}"),
    "onepassword-token": ("ops_eyJ", r"[A-Za-z0-9+/=_-]{40,}"),
    "perplexity-key": ("pplx-", r"[A-Za-z0-9]{30,}"),
    "planetscale-token": ("pscale_tkn_|pscale_pw_|pscale_oauth_", r"[A-Za-z0-9._=-]{20,}"),
    "plaid-token": ("access-sandbox-|access-production-|access-development-", r"[0-9a-f-]{30,}"),
    "postman-key": ("PMAK-", r"[0-9a-f]{24}-[0-9a-f]{34}"),
    "pulumi-token": ("pul-", r"[0-9a-f]{40}"),
    "replicate-token": ("r8_", r"[A-Za-z0-9]{30,}"),
    "resend-key": ("re_", r"(?=[A-Za-z_]{0,40}\d)[A-Za-z0-9]{8}_[A-Za-z0-9]{20,}"),
    "rubygems-key": ("rubygems_", r"[0-9a-f]{40,}"),
    "sendgrid-key": ("SG.", r"[A-Za-z0-9_-]{16,}\.[A-Za-z0-9_-]{16,}"),
    "sendinblue-key": ("xkeysib-", r"[0-9a-f]{40,}[A-Za-z0-9-]*"),
    "sentry-token": ("sntrys_|sntryu_", r"[A-Za-z0-9+/=_]{20,}"),
    "shopify-token": ("shpat_|shpca_|shppa_|shpss_", r"[0-9A-Fa-f]{24,}"),
    "sonar-token": ("sqp_|squ_|sqa_", r"[0-9a-f]{40}"),
    "square-token": ("sq0atp-|sq0csp-|sq0idp-", r"[0-9A-Za-z_-]{22,}"),
    "stripe-secret": ("whsec_", r"[A-Za-z0-9+/=]{20,}"),
    "supabase-token": ("sbp_|sb_secret_", r"[0-9A-Za-z_-]{20,}"),
    "tailscale-key": ("tskey-", r"[A-Za-z0-9-]{20,}"),
    "vault-token": ("hvs.|hvb.|hvr.", r"[A-Za-z0-9_-]{20,}"),
    "vault-token ": (
        "s.|b.|r.",
        r"(?=[A-Za-z]{0,40}\d)(?=[A-Z0-9]{0,40}[a-z])(?=[a-z0-9]{0,40}[A-Z])[A-Za-z0-9]{24}(?![A-Za-z0-9._-])",
    ),
    "xai-key": ("xai-", r"[A-Za-z0-9]{40,}"),
    "yandex-token": ("AQVN|y0_", r"[A-Za-z0-9_-]{35,}"),
}
"""By kind: prefixes, and what follows."""


def _prefixed(name: str, literals: str, rest: str) -> SecretPattern:
    escaped = "|".join(literal.replace(".", r"\.") for literal in literals.split("|"))
    return secret_pattern(name.strip(), literals, rf"{START}(?:{escaped}){rest}")


WEBHOOK_PATH = r"[A-Za-z0-9_/-]{16,}"

VENDOR_PATTERNS = (
    *(_prefixed(name, literals, rest) for name, (literals, rest) in PREFIXES.items()),
    secret_pattern("discord-token", ".", START + r"[MNO][A-Za-z\d_-]{23,27}\.[A-Za-z\d_-]{6}\.[A-Za-z\d_-]{27,40}"),
    secret_pattern("discord-webhook", "/api/webhooks/", r"/api/webhooks/(?P<secret>\d{10,20}/[A-Za-z0-9_-]{20,})"),
    secret_pattern("mailchimp-key", "-us", START + r"[0-9a-f]{32}-us\d{1,2}" + END),
    secret_pattern("slack-webhook", "hooks.slack.com", r"hooks\.slack\.com/(?:services|workflows|triggers)/(?P<secret>" + WEBHOOK_PATH + ")"),
    secret_pattern("teams-webhook", "webhook.office.com", r"webhook\.office\.com/webhookb2/(?P<secret>[A-Za-z0-9@/-]{30,})"),
    secret_pattern("telegram-token", ":", r"(?<![A-Za-z0-9_])(?:bot)?(?P<secret>\d{8,10}:[A-Za-z0-9_-]{35})(?![A-Za-z0-9_-])"),
    secret_pattern("terraform-token", ".atlasv1.", START + r"[A-Za-z0-9]{14}\.atlasv1\.[A-Za-z0-9_-]{40,}"),
    secret_pattern("twilio-key", "SK", START + r"SK(?=[a-f]{0,40}\d)[0-9a-f]{32}" + END),
    secret_pattern("azure-key", "AccountKey=|SharedAccessKey=", r"(?:AccountKey|SharedAccessKey)=(?P<secret>[A-Za-z0-9+/=]{20,})"),
    secret_pattern("signature", "sig=|Signature=|Credential=", r"[?&](?:sig|X-Amz-Signature|X-Goog-Signature|Signature)=(?P<secret>[A-Za-z0-9%+/=_-]{20,})"),
    secret_pattern("password-hash", "$", r"\$(?:apr1|1|2[abxy]|5|6|7|y|argon2(?:id|i|d))\$(?P<secret>[A-Za-z0-9./$=,+]{20,300})"),
    secret_pattern("npm-token", "_auth", r"_auth(?:Token)?\s?=\s?[\"']?(?P<secret>(?!\$)[A-Za-z0-9+/=_-]{16,})"),
    secret_pattern("session-cookie", "essid=|sid=|sessionid=|csrftoken=", r"\b(?:PHPSESSID|JSESSIONID|sessionid|connect\.sid|csrftoken)=(?P<secret>[A-Za-z0-9%._:-]{16,})"),
)  # fmt: skip
