"""Find credentials by their form: tokens, URLs with a password, headers and options, private keys.

Tokens are recognized whatever surrounds them. To add a vendor, add one `TokenPattern` with its fixed prefix and a
pattern for the rest, and one line to the examples in the tests. A pattern is matched only at its prefix. It is atomic
and takes the whole run of token characters, so that no rest of a secret is left behind. A part that must be followed by
something else is bounded (`{8,2000}`), so that time stays linear.

In a URL or a connection string (`scheme://user:password@host`) only the credential is taken. The scheme, the user and
the host stay, because they carry the knowledge.

Keywords mark the places that files have for credentials: Authorization headers, npmrc, SQL, redis.conf. Command lines
and files of several lines are in `commands` and `layouts`.

Private keys in text armor (PEM, OpenSSH, PGP) are found whole, or without their end where the text was cut off. This is
the only rule that may take several lines. It takes the armor's own lines only, so a Markdown fence around a key stays.

`patterns` has the common ones. A pattern here is compiled when its prefix or anchor is in a text for the first time,
because compiling all of them would delay every command. To add a service, add one line to a table and one example to
the tests.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Callable, Iterator
from functools import cache
from typing import NamedTuple

from echod.lazy import lazy_pattern
from echod.memory.redact.plausibility import (
    has_mixed_run,
    is_code,
    is_descriptive_word,
    is_identifier,
    is_placeholder,
    is_strange,
    is_strong_password,
    is_word,
    looks_random,
)
from echod.memory.redact.spans import Secret, find_all, lower_same_length, without_overlaps

_JWT = r"[A-Za-z0-9_-]{8,2000}+\.[A-Za-z0-9_-]{8,8000}+\.[A-Za-z0-9_-]*"
_WORD_BEFORE = lazy_pattern(r"[A-Za-z0-9]")
_AUTHORITY = lazy_pattern(r"[^\s/?#\"'`<>|\\\uffff]{1,512}")
_MIN_URL_TOKEN_LENGTH = 16
_MIN_TOKEN_LENGTH = 6
_MIN_WORD_TOKEN_LENGTH = 16
_TOKEN = rf"(?P<value>[A-Za-z0-9._~+/=:-]{{{_MIN_TOKEN_LENGTH},2048}})"
_ARGUMENT = r"(?P<value>[^\s\"'`\uffff]{1,128})"
_ENCODED = r"(?P<value>[A-Za-z0-9+/_.-]{8,1024}={0,2})"
_RFC_NUMBER = lazy_pattern(r"[A-Z]{2,5}-?[0-9]{1,5}")  # RFC6750
_ALPHANUMERIC_RUN = lazy_pattern(r"[A-Za-z0-9]+")
_HEADER = r"authorization\\?[\"'\]]{0,3}[ \t]{0,4}[:=,][ \t]{0,4}[bf]?\\?[\"'`]?"
# The lines of a key are separated by line breaks, and by what quoting adds: blanks, `>`, string quotes, `+`, `\`.
_SPACING = r"[\s\"'\\>+,|]"
_LABEL = r"(?:[A-Z0-9]{1,12}[ ]){0,4}PRIVATE[ ]KEY(?:[ ]BLOCK)?[ ]?-{4,5}"
_LINE = r"[A-Za-z0-9+/=]{16,}+"
_PRIVATE_KEY_BLOCK = lazy_pattern(
    rf"""-{{4,5}}[ ]?BEGIN[ ]{_LABEL}
        (?:{_SPACING}{{1,64}}[A-Z][A-Za-z0-9-]{{1,30}}:[ ][^\n\uffff]{{0,120}}(?=\n)){{0,8}}    # Proc-Type: 4,ENCRYPTED
        (?P<body>(?:{_SPACING}{{0,64}}{_LINE})++)
        (?: (?:{_SPACING}{{1,64}}[A-Za-z0-9+/=]{{1,15}}+)? {_SPACING}{{0,64}}-{{4,5}}[ ]?END[ ]{_LABEL} )?
    """,
    re.VERBOSE,
)
_KEY_LINE = lazy_pattern(_LINE)
# Characters of base64. The smallest private key (Ed25519, 48 bytes) has 64; fewer are a placeholder.
_MIN_KEY_CHARACTERS = 56


class TokenPattern(NamedTuple):
    """A token form: any of the prefixes, then the pattern, which must not end within a longer word."""

    kind: str
    prefixes: tuple[str, ...]
    pattern: re.Pattern[str]


def _token(kind: str, prefixes: str, rest: str) -> TokenPattern:
    """Return a form of open length. `ghp_xxxxxxxx` has that form too, so a rest that is crossed out is not a token."""
    return _fixed_length_token(kind, prefixes, rf"(?![A-Za-z0-9_-]{{0,12}}[xX]{{6}})(?:{rest})")


def _fixed_length_token(kind: str, prefixes: str, rest: str) -> TokenPattern:
    """Return a form of one length. Every text of that form is taken, whatever its characters."""
    return TokenPattern(kind, tuple(prefixes.split()), lazy_pattern(rf"(?>{rest})(?![A-Za-z0-9_])"))


TOKEN_PATTERNS = (
    _token("anthropic-key", "sk-ant-", r"[A-Za-z0-9_-]{20,}"),
    _token("openai-key", "sk-proj- sk-svcacct- sk-admin- sk-None-", r"[A-Za-z0-9_-]{20,}"),
    _token("openai-key", "sk-", r"[A-Za-z0-9]{20,}"),
    _token("stripe-key", "sk_live_ sk_test_ rk_live_ rk_test_", r"[A-Za-z0-9]{24,}"),
    _token("stripe-key", "whsec_", r"[A-Za-z0-9+/]{24,}={0,2}"),
    _fixed_length_token("aws-access-key", "AKIA ASIA ABIA ACCA", r"[A-Z0-9]{16}"),
    _token("github-token", "ghp_ gho_ ghu_ ghs_ ghr_", r"[A-Za-z0-9]{20,}"),
    _token("github-token", "ghs_", rf"[0-9]{{1,20}}_eyJ{_JWT}"),
    _token("github-token", "github_pat_", r"[A-Za-z0-9_]{22,}"),
    _token(
        "gitlab-token",
        "glpat- gldt- glrt- glcbt- glptt- glft- glimt- glsoat- gloas- glagent-",
        r"[A-Za-z0-9_-]{20,}(?:\.[A-Za-z0-9_-]{2,40}){0,3}",
    ),
    _token("slack-token", "xoxa- xoxb- xoxc- xoxd- xoxe- xoxe. xoxo- xoxp- xoxr- xoxs- xapp-", r"[A-Za-z0-9%_-]{16,}"),
    _token("slack-webhook", "hooks.slack.com/", r"(?:services|workflows|triggers)/[A-Za-z0-9/_-]{20,}"),
    _token("sendgrid-key", "SG.", r"[A-Za-z0-9_-]{16,32}\.[A-Za-z0-9_-]{32,}"),
    _token("npm-token", "npm_", r"[A-Za-z0-9]{30,}"),
    _fixed_length_token("huggingface-token", "hf_ api_org_", r"[A-Za-z0-9]{34}"),
    _token("google-api-key", "AIza", r"[A-Za-z0-9_-]{30,}"),
    _token("google-oauth-token", "ya29.", r"[A-Za-z0-9_-]{20,}"),
    _token("google-oauth-secret", "GOCSPX-", r"[A-Za-z0-9_-]{20,}"),
    _token("jwt", "eyJ", _JWT),
    # Services without a kind of their own, by prefixes that nothing else has.
    _token("api-key", "hvs. hvb. hvr.", r"[A-Za-z0-9_-]{20,}"),  # HashiCorp Vault
    _token("api-key", "dckr_pat_ dckr_oat_", r"[A-Za-z0-9_-]{20,}"),  # Docker
    _fixed_length_token("api-key", "dapi", r"[a-fA-F0-9]{32}(?:-[0-9])?"),  # Databricks
    _token("api-key", "glsa_ glc_", r"[A-Za-z0-9+/=]{24,}(?:_[A-Fa-f0-9]{8})?"),  # Grafana
    _token("api-key", "gsk_", r"[A-Za-z0-9]{40,}"),  # Groq
    _token("api-key", "xai-", r"[A-Za-z0-9]{40,}"),  # xAI
    _token("api-key", "r8_", r"[A-Za-z0-9]{30,}"),  # Replicate
    _token("api-key", "sk-or-v1-", r"[a-f0-9]{40,}"),  # OpenRouter
    _token("api-key", "figd_", r"[A-Za-z0-9_-]{30,}"),  # Figma
    _token("api-key", "ntn_", r"[0-9]{11}[A-Za-z0-9]{35}"),  # Notion
    _token("api-key", "lin_api_", r"[A-Za-z0-9]{30,}"),  # Linear
    _token("api-key", "shpat_ shpca_ shppa_ shpss_", r"[A-Za-z0-9]{30,}"),  # Shopify
    _token("api-key", "tskey-", r"[a-z]{2,12}-[A-Za-z0-9]{8,40}-[A-Za-z0-9]{16,}"),  # Tailscale
    _token("api-key", "vcp_ vci_ vca_ vcr_ vck_", r"[A-Za-z0-9]{24,}"),  # Vercel
    _token("api-key", "dop_v1_ doo_v1_ dor_v1_", r"[a-f0-9]{64}"),  # DigitalOcean
    _token("api-key", "ops_eyJ", r"[A-Za-z0-9_-]{100,}"),  # 1Password
    _token("api-key", "pypi-AgE", r"[A-Za-z0-9_-]{50,}"),  # Python packages
    _token("api-key", "AGE-SECRET-KEY-1", r"[A-Z0-9]{50,}"),  # age
)


_PREFIXES = tuple((prefix, pattern) for pattern in TOKEN_PATTERNS for prefix in pattern.prefixes)


def find_tokens(text: str) -> list[Secret]:
    """Return every token of a known form; where two forms share a prefix, the first in the table has precedence."""
    candidates = [(prefix, pattern) for prefix, pattern in _PREFIXES if prefix in text]
    return without_overlaps(secret for prefix, pattern in candidates for secret in _matches(prefix, pattern, text))


def _matches(prefix: str, token_pattern: TokenPattern, text: str) -> Iterator[Secret]:
    done = 0
    for at in find_all(text, prefix):
        if at < done or (at and _WORD_BEFORE.match(text, at - 1)):
            continue
        match = token_pattern.pattern.match(text, at + len(prefix))
        if match is not None:
            done = match.end()
            yield Secret(token_pattern.kind, at, done)


def find_url_credentials(text: str) -> list[Secret]:
    """Return the password of each URL that has one, or a token in the place of the user."""
    return [
        secret
        for at in find_all(text, "://")
        if (authority := _AUTHORITY.match(text, at + 3))
        and "@" in authority[0]
        and (secret := _credential(authority[0], at + 3))
    ]


def _credential(authority: str, offset: int) -> Secret | None:
    userinfo, _, _host = authority.rpartition("@")
    user, colon, password = userinfo.partition(":")
    if colon:
        if not password or is_placeholder(password):
            return None
        start = offset + len(user) + 1
        return Secret("connection-string", start, start + len(password))
    if looks_random(user, min_length=_MIN_URL_TOKEN_LENGTH):
        return Secret("connection-string", offset, offset + len(user))
    return None


class CredentialPattern(NamedTuple):
    """A pattern with a group `value`, matched at each of the keywords; `accepts` checks the value."""

    kind: str
    keywords: tuple[str, ...]
    pattern: re.Pattern[str]
    accepts: Callable[[str], bool]


def _is_token(value: str) -> bool:
    """Return whether the word after "bearer" is a token and not the next word of a sentence."""
    if is_word(value) and not looks_random(value, min_length=_MIN_WORD_TOKEN_LENGTH):
        return False
    if is_placeholder(value) or is_code(value) or is_descriptive_word(value) or _RFC_NUMBER.fullmatch(value):
        return False
    return any(has_mixed_run(run, min_length=2) for run in _ALPHANUMERIC_RUN.findall(value)) or looks_random(
        value, min_length=_MIN_TOKEN_LENGTH
    )


def _is_header_credential(value: str) -> bool:
    """Return whether the word after "Authorization:" is a credential; there, a long run of letters is one too."""
    if not value.isalpha() or is_placeholder(value):
        return _is_token(value)
    return len(value) >= _MIN_WORD_TOKEN_LENGTH or looks_random(value, min_length=_MIN_TOKEN_LENGTH)


def _is_mixed(value: str) -> bool:
    return has_mixed_run(value, min_length=4)


def _is_not_placeholder(value: str) -> bool:
    return not is_placeholder(value)


def _is_not_described(value: str) -> bool:
    return not (is_placeholder(value) or is_descriptive_word(value) or is_identifier(value))


def _is_basic_login(value: str) -> bool:
    """Return whether a value is `user:password` in base64, or a random token in that place."""
    try:
        login = base64.b64decode(value + "=" * (-len(value) % 4), validate=True).decode()
    except ValueError:
        return looks_random(value, min_length=_MIN_WORD_TOKEN_LENGTH)
    return (":" in login and login.isprintable()) or looks_random(value, min_length=_MIN_WORD_TOKEN_LENGTH)


def _credential_pattern(
    kind: str, keywords: tuple[str, ...], pattern: str, accepts: Callable[[str], bool]
) -> CredentialPattern:
    return CredentialPattern(kind, keywords, lazy_pattern(pattern, re.IGNORECASE), accepts)


CREDENTIAL_PATTERNS = (
    _credential_pattern(
        "bearer-token", ("authorization",), rf"{_HEADER}bearer[ \t]{{1,4}}{_TOKEN}", _is_header_credential
    ),
    _credential_pattern(
        "bearer-token", ("bearer",), rf"bearer(?:[ \t]{{1,4}}|[ \t]{{0,2}}[:=][ \t]{{0,2}}[\"'`]?){_TOKEN}", _is_token
    ),
    _credential_pattern(
        "authorization",
        ("authorization",),
        rf"{_HEADER}(?:(?:basic|token|digest|apikey|api-key|key|bot)[ \t]{{1,4}})?{_TOKEN}",
        _is_header_credential,
    ),
    _credential_pattern(
        "password", ("login ",), rf"login[ \t]+[^\s\uffff]{{1,64}}[ \t]+password[ \t]+{_ARGUMENT}", _is_not_described
    ),
    # npmrc: //registry.example.org/:_auth=...
    _credential_pattern("password", ("_auth",), rf"_auth[ \t]{{0,2}}[=:][ \t]{{0,2}}[\"']?{_ENCODED}", _is_basic_login),
    # ~/.docker/config.json
    _credential_pattern("password", ('"auth"',), rf'"auth"[ \t]{{0,4}}:[ \t]{{0,4}}"{_ENCODED}', _is_basic_login),
    # redis.conf, slapd.conf, ldap.conf, the settings of network devices
    _credential_pattern(
        "password",
        ("requirepass ", "masterauth ", "rootpw ", "bindpw ", "server community "),
        rf"[a-z ]{{6,20}}[ \t]{{1,8}}[\"']?{_ARGUMENT}",
        is_strong_password,
    ),
    _credential_pattern(
        "password",
        ("username ",),
        rf"username [^\s\uffff]{{1,64}} (?:privilege \d{{1,2}} )?(?:password|secret) (?:[057] )?{_ARGUMENT}",
        is_strong_password,
    ),
    _credential_pattern(
        "password",
        ("set password for ",),
        rf"set password for [^=\n\uffff]{{1,80}}=[ \t]{{0,2}}(?:password\()?[\"']{_ARGUMENT}",
        _is_not_placeholder,
    ),
    # Password for ci: ..., the password was changed to ...
    _credential_pattern(
        "password",
        ("password",),
        r"password[\"'`*_]{0,2}[ \t](?:(?:for|of|on|to|at)[ \t](?:[\w@.'`-]{1,40}[ \t]){0,4}?"
        r"[\w@.'`-]{1,40}[ \t]{0,2}(?::|=|->|\bis\b|\bwas\b)"
        r"|(?:(?:was|is|has been)[ \t])?(?:re)?(?:set|changed|rotated)[ \t]to)"
        r"[*_]{0,2}[ \t]{1,2}[`\"']?(?P<value>[^\s`\"',;()<>|\uffff]{6,64})",
        is_strange,
    ),
    # 8f3k-29dk-x02m, and the words from which a wallet is restored
    _credential_pattern(
        "password",
        ("recovery code", "backup code", "2fa code"),
        r"(?:recovery|backup|2fa) codes?[*`\"']{0,2}[ \t]{0,2}[:=][*]{0,2}[ \t]{0,2}[`\"']?"
        r"(?P<value>(?:[a-z0-9]{4,6}(?:-[a-z0-9]{4,6}){1,7}(?:,?[ ])?){1,10})(?![\w-])",
        _is_mixed,
    ),
    _credential_pattern(
        "secret",
        ("seed phrase", "mnemonic", "recovery phrase"),
        r"(?:seed phrase|mnemonic|recovery phrase)(?:[ \t]is)?[*`\"']{0,2}[ \t]{0,2}[:= ][*]{0,2}[ \t]{0,2}[`\"']?"
        r"(?P<value>[a-z]{3,8}(?:[ ][a-z]{3,8}){11,23})(?=[`\"'.]?[ \t]{0,4}(?:\n|$))",
        str.islower,
    ),
    # CREATE USER shop IDENTIFIED BY '...', ALTER ROLE shop PASSWORD '...'
    _credential_pattern(
        "password",
        ("identified ",),
        rf"identified[ \t]{{1,4}}(?:with[ \t]{{1,4}}[\"'`]?\w{{1,40}}[\"'`]?[ \t]{{1,4}})?"
        rf"(?:by|as)[ \t]{{1,4}}[\"']{_ARGUMENT}",
        _is_not_placeholder,
    ),
    _credential_pattern(
        "password",
        ("password '", 'password "', "password e'"),
        rf"password[ \t]e?[\"']{_ARGUMENT}(?=[\"'])",
        _is_not_described,
    ),
    _credential_pattern(
        "token", ("sig=", "x-amz-signature="), r"[a-z-]{3,15}=(?P<value>[A-Za-z0-9%+/_-]{32,256}={0,2})", _is_token
    ),
)


def find_keyword_credentials(text: str) -> list[Secret]:
    """Return every credential in one of the places that programs have for them."""
    lower = lower_same_length(text)
    return without_overlaps(
        Secret(credential.kind, match.start("value"), match.start("value") + len(value))
        for credential in CREDENTIAL_PATTERNS
        for keyword in credential.keywords
        for at in find_all(lower, keyword)
        if (match := credential.pattern.match(text, at)) and credential.accepts(value := match["value"].rstrip(".,: "))
    )


def find_private_keys(text: str) -> list[Secret]:
    """Return every armored private key that contains key material."""
    if "PRIVATE KEY" not in text:
        return []
    return [
        Secret("private-key", key.start(), key.end())
        for key in _PRIVATE_KEY_BLOCK.finditer(text)
        if sum(map(len, _KEY_LINE.findall(key["body"]))) >= _MIN_KEY_CHARACTERS
    ]


_UUID = r"[a-f0-9]{8}(?:-[a-f0-9]{4}){3}-[a-f0-9]{12}"
_DISCORD = "discord.com/api/webhooks/ discordapp.com/api/webhooks/"
# The beginnings of "-----BEGIN ... PRIVATE" in base64; a certificate has another one and is public.
_ARMOR = "LS0tLS1C" + "RUdJTi"  # split, since the product finds it in its own source
_ENCODED_KEY = (
    "(?:BSU0EgUFJJVkFUR|BQUklWQVRF|BFQyBQUklWQVRF|BEU0EgUFJJVkFUR|BPUEVOU1NIIFBSSVZBVE|BFTkNSWVBURUQgUFJJVkFUR"
    "|BQR1AgUFJJVkFUR)"
)
_CROSSED_OUT = r"(?![A-Za-z0-9_-]{0,12}[xX]{6})"
_TOKEN_BEFORE = lazy_pattern(r"[A-Za-z0-9_.~-]")

# The kind, the prefixes, and the pattern of the rest, which must not end within a longer word.
PREFIXED_FORMS: tuple[tuple[str, str, str], ...] = (
    ("private-key", _ARMOR, rf"{_ENCODED_KEY}[A-Za-z0-9+/=]{{8,}}"),  # armor in base64, as in kubeconfig
    ("api-key", "bot", r"[0-9]{8,10}:[A-Za-z0-9_-]{35}"),
    ("api-key", _DISCORD, r"[0-9]{17,20}/[A-Za-z0-9_-]{60,}"),
    ("api-key", "ATATT3x ATCTT3x ATBB ATCTT3", r"[A-Za-z0-9_=-]{24,}"),
    ("api-key", "AQ.", r"[A-Za-z0-9_-]{35,}"),
    # NVIDIA, Contentful, Typeform, Pinecone, Cerebras, Artifactory
    ("api-key", "nvapi- CFPAT- tfp_ pcsk_ csk- AKCp", r"[A-Za-z0-9_-]{40,}"),
    ("api-key", "tvly-", r"(?:(?:dev|prod)-)?[A-Za-z0-9_-]{30,}"),  # Tavily
    # Together, Jina, Apify, Neon, PostHog, MongoDB Atlas
    ("api-key", "tgp_v1_ jina_ apify_api_ napi_ phx_ mdb_sa_sk_", r"[A-Za-z0-9_-]{30,}"),
    ("api-key", "lsv2_pt_ lsv2_sk_", r"[a-f0-9]{32}_[a-f0-9]{10}"),  # LangSmith
    ("api-key", "NRAK- PMAK-", r"[A-Za-z0-9-]{27,}"),  # New Relic, Postman
    ("api-key", "sntrys_ sntryu_", r"[A-Za-z0-9_+/=-]{40,}"),  # Sentry
    # SonarQube, Pulumi, Buildkite, Shippo, E2B
    ("api-key", "sqp_ squ_ sqa_ pul- bkua_ shippo_live_ shippo_test_ e2b_", r"[a-f0-9]{40}"),
    ("api-key", "dp.pt. dp.st. dp.ct. dp.sa. dp.scim. dp.audit.", r"[A-Za-z0-9._-]{38,}"),  # Doppler
    ("api-key", "pscale_tkn_ pscale_pw_ pscale_oauth_", r"[A-Za-z0-9_.-]{30,}"),  # PlanetScale
    ("api-key", "nfp_ nfc_ nfo_ nfu_ nfb_ pnu_ pnb_", r"[A-Za-z0-9]{36,}"),  # Netlify, Prefect
    ("api-key", "EAACEdEose0cBA EAAG EAAB", r"[A-Za-z0-9]{36,}"),  # Meta
    ("api-key", "fm1r_ fm2_ fo1_", r"[A-Za-z0-9_+/=-]{38,}"),  # Fly.io
    ("api-key", "HRKU- dbtc_ dbtu_ CCIPAT_ CCIPRJ_", r"[A-Za-z0-9_-]{36,}"),  # Heroku, dbt, CircleCI
    ("api-key", "rubygems_", r"[a-f0-9]{48}"),  # RubyGems
    ("api-key", "CLOJARS_", r"[a-z0-9]{60}"),  # Clojars
    ("api-key", "oy2", r"[a-z0-9]{43}"),  # NuGet
    ("api-key", "dt0c01. dt0s01. dt0s16.", r"[A-Z0-9]{24}\.[A-Z0-9]{64}"),  # Dynatrace
    ("api-key", "xkeysib- xsmtpsib-", r"[a-f0-9]{64}-[A-Za-z0-9]{16}"),  # Brevo
    ("api-key", "key- fc-", r"[a-f0-9]{32}"),  # Mailgun, Firecrawl
    ("api-key", "sq0atp- sq0csp-", r"[A-Za-z0-9_-]{22,}"),  # Square
    ("api-key", "re_", r"[A-Za-z0-9]{8}_[A-Za-z0-9]{24}"),  # Resend
    ("api-key", "pat-na1- pat-eu1-", r"[a-f0-9]{8}(?:-[a-f0-9]{4}){3}-[a-f0-9]{12}"),  # HubSpot
    ("api-key", "sk.eyJ tk.eyJ", r"[A-Za-z0-9_-]{20,2000}\.[A-Za-z0-9_-]{20,}"),  # Mapbox
    ("api-key", "rdme_", r"[a-z0-9]{70}"),  # ReadMe
    ("api-key", "glffct- glwt- GR1348941 sb_secret_ sbp_", r"[A-Za-z0-9_-]{20,}"),  # GitLab, other kinds; Supabase
    ("api-key", "LTAI", r"[A-Za-z0-9]{16,26}"),  # Alibaba Cloud
    ("api-key", "FLWSECK_TEST- FLWSECK-", r"[A-Za-z0-9-]{32,}"),  # Flutterwave
    ("api-key", "PMAT-", r"[A-Z0-9]{26}"),  # Postman collections
    ("api-key", "access-sandbox- access-production- access-development- sk-lf-", _UUID),  # Plaid, Langfuse
    ("api-key", "secret_", r"[A-Za-z0-9]{43}"),  # Notion, before 2024
    ("api-key", "signkey-prod- signkey-test-", r"[a-f0-9]{40,}"),  # Inngest
    ("api-key", "EAAA", r"[A-Za-z0-9_-]{56,}"),  # Square
    ("api-key", "AKID ico-", r"[A-Za-z0-9]{32}"),  # Tencent Cloud, Infracost
    ("api-key", "pplx-", r"[A-Za-z0-9]{32,}"),  # Perplexity
    ("google-oauth-token", "1//0", r"[A-Za-z0-9_-]{40,}"),  # refresh tokens
    ("api-key", "eyJr", r"Ijoi[A-Za-z0-9+/]{60,}={0,2}"),  # Grafana, older
    ("api-key", "open.feishu.cn/ open.larksuite.com/", rf"open-apis/bot/v2/hook/{_UUID}"),
    ("api-key", "qyapi.weixin.qq.com/", rf"cgi-bin/webhook/send\?key={_UUID}"),
    ("api-key", "webhook.office.com/", r"webhookb2/[A-Za-z0-9@/-]{60,300}"),  # Microsoft Teams
    ("api-key", "sha256~", r"[A-Za-z0-9_-]{43}"),  # OpenShift
    ("api-key", "p8e-", r"[a-z0-9]{32}"),  # Adobe
    ("api-key", "dnkey-", r"[a-z0-9=_-]{26}-[a-z0-9=_-]{52}"),  # Defined Networking
    ("api-key", "duffel_test_ duffel_live_", r"[A-Za-z0-9_=-]{43}"),
    ("api-key", "EZAK EZTK", r"[A-Za-z0-9]{54}"),  # EasyPost
    ("api-key", "fio-u-", r"[A-Za-z0-9=_-]{64}"),  # Frame.io
    ("api-key", "s-s4t2ud- s-s4t2af- slk_", r"[a-f0-9]{64}"),  # 42, Sourcegraph
    ("api-key", "NRII- NRRA- NRJS-", r"[A-Za-z0-9_-]{19,}"),  # New Relic
    ("api-key", "sgp_", r"(?:(?:local|[a-f0-9]{16})_)?[a-f0-9]{40}"),  # Sourcegraph
    ("api-key", "AQVN", r"[A-Za-z0-9_-]{35,38}"),  # Yandex Cloud
    ("api-key", "v1.0-", r"[a-f0-9]{24}-[a-f0-9]{146}"),  # Cloudflare, origin certificates
    ("api-key", "fw_ rnd_", r"[A-Za-z0-9]{24,}"),  # Fireworks, Render
    ("api-key", "tr_dev_ tr_prod_ tr_stg_ tr_pat_", r"[A-Za-z0-9]{20,}"),  # Trigger.dev
    ("api-key", "sl.u. sl.", r"[A-Za-z0-9_-]{130,}"),  # Dropbox
    ("api-key", "IGQV", r"[A-Za-z0-9_-]{80,}"),  # Instagram
    ("api-key", "AAAAAAAAAAAAAAAAAAAAA", r"[A-Za-z0-9%]{60,}"),  # X, formerly Twitter
    ("api-key", "esecret_", r"[A-Za-z0-9]{26,}"),  # Anyscale
    ("api-key", "sk_", r"[a-f0-9]{48}"),  # ElevenLabs
    ("api-key", "hooks.zapier.com/", r"hooks/catch/[0-9]{4,12}/[A-Za-z0-9]{6,}"),  # Zapier
    ("api-key", "maker.ifttt.com/", r"(?:use|trigger/[\w-]{1,64}/(?:json/)?with/key)/[A-Za-z0-9_-]{20,}"),  # IFTTT
)

# The kind, a part that every token of the form contains, and its pattern, which must not be within a longer word.
ANCHORED_FORMS: tuple[tuple[str, str, str], ...] = (
    ("secret", "Q~", r"[A-Za-z0-9_~.]{3}[0-9]Q~[A-Za-z0-9_~.-]{28,45}"),  # Azure app registrations
    ("api-key", ":AA", r"[0-9]{8,10}:AA[A-Za-z0-9_-]{33}"),
    *(("api-key", f"-us{digit}", rf"[0-9a-f]{{32}}-us{digit}[0-9]?") for digit in range(1, 10)),  # Mailchimp
    ("api-key", ".atlasv1.", r"[A-Za-z0-9]{14}\.atlasv1\.[A-Za-z0-9_-]{60,70}"),  # HCP Terraform
    ("api-key", "pat", r"pat[A-Za-z0-9]{14}\.[a-f0-9]{64}"),  # Airtable
    ("api-key", ".", r"[MNO][A-Za-z0-9_-]{23,27}\.[A-Za-z0-9_-]{6}\.[A-Za-z0-9_-]{27,38}"),  # Discord bots
    ("api-key", ":APA91b", r"[A-Za-z0-9_-]{6,12}:APA91b[A-Za-z0-9_-]{100,200}"),  # Firebase messaging
    ("api-key", "access_token$", r"access_token\$(?:production|sandbox)\$[a-z0-9]{16}\$[a-f0-9]{32}"),  # PayPal
)


class VendorForm(NamedTuple):
    """One prefix with the pattern of the rest; or, with `anchored`, a text to look for and the whole pattern."""

    kind: str
    key: str
    source: str
    anchored: bool


VENDOR_FORMS = (
    *(
        VendorForm(kind, prefix, rf"(?>{_CROSSED_OUT}(?:{rest}))(?![A-Za-z0-9_])", anchored=False)
        for kind, prefixes, rest in PREFIXED_FORMS
        for prefix in prefixes.split()
    ),
    *(
        VendorForm(kind, anchor, rf"{pattern}(?![A-Za-z0-9_])", anchored=True)
        for kind, anchor, pattern in ANCHORED_FORMS
    ),
)


@cache
def compiled_form(source: str) -> re.Pattern[str]:
    """Compile the pattern of a service once."""
    return re.compile(source)


def find_vendor_tokens(text: str) -> list[Secret]:
    """Return every token of these services; where two forms fit, the one that starts earlier has precedence."""
    forms = [form for form in VENDOR_FORMS if form.key in text]
    return without_overlaps(secret for form in forms for secret in _vendors_matches(form, text))


def _vendors_matches(form: VendorForm, text: str) -> Iterator[Secret]:
    pattern = compiled_form(form.source)
    if form.anchored:
        # A lookbehind at the start of the pattern would make the search ten times as slow.
        for token in pattern.finditer(text):
            if not (token.start() and _TOKEN_BEFORE.match(text, token.start() - 1)):
                yield Secret(form.kind, *token.span())
        return
    done = 0
    for at in find_all(text, form.key):
        if at < done or (at and _WORD_BEFORE.match(text, at - 1)):
            continue
        match = pattern.match(text, at + len(form.key))
        if match is not None:
            done = match.end()
            yield Secret(form.kind, at, done)
