"""Secrets given away by a name beside them, and what only looks like one. `¦` in a text stands for nothing: it keeps
scanners from taking an example for a leak; `«»` stand around what is to be replaced."""

from __future__ import annotations

import pytest

from echod.memory.redact import find_secrets, redact

SECRETS = [
    ("password", "password: «hunter2»"),
    ("password", 'password: "«hunter2»"'),
    ("password", "password = '«correct h¦orse batt¦ery stapl¦e 9»'"),
    ("password", "PASSWORD=«hunter2»"),
    ("password", "DB_PASSWORD=«postgres»"),
    ("password", "export PGPASSWORD=«sup3rs3cret»"),
    ("password", "pwd=«Tr0ub4dor&3»"),
    ("password", "Pwd=«myPassword9»;"),
    ("password", "Server=x;Uid=me;Password=«abc123»;Trusted=yes"),
    ("password", "Server=x;Uid=me;Password=«letmein»;Trusted=yes"),
    ("password", '"password": "«hunter2»",'),
    ("password", "'password': '«hunter2»'"),
    ("password", "spring.datasource.password=«hunter2»"),
    ("password", "mysql --user=root --password=«strongp@55!» --host=h"),
    ("password", "mysql --password «strongp@55» -h x"),
    ("password", "<password>«hunter2»</password>"),
    ("password", 'config["password"] = "«s3cr3tpw»"'),
    ("password", "- **Password**: «hunter2x»"),
    ("password", "| password | «hunter2x» |"),
    ("password", "the password is «hunter2x» for staging"),
    ("password", 'set the password to "«hunter2x»"'),
    ("password", 'db_pass: "«qwe123rty»"'),
    ("password", "passwd=«abc123»"),
    ("password", 'passphrase: "«four scor¦e and 7 y¦ears»"'),
    ("password", "The admin password was `«Wint3r2024!»`"),
    ("password", "https://x.com/login?user=a&password=«hunter2x»&z=1"),
    ("password", "curl -u admin:«hunter2x» https://x"),
    ("api-key", "api_key: «abcd1234e¦fgh5678ij¦kl»"),
    ("api-key", "API_KEY=«abcd1234e¦fgh5678»"),
    ("api-key", 'apiKey: "«aB3dE5gH7¦jK9mN1pQ3¦sT»"'),
    ("api-key", '"apiKey": "«aB3dE5gH7¦jK9mN1pQ3¦sT»"'),
    ("api-key", "X-API-Key: «aB3dE5gH7¦jK9mN1pQ3¦sT»"),
    ("api-key", "the API key «aB3dE5gH7¦jK9mN1pQ3¦sT» was used"),
    ("token", "token: «aB3dE5gH7¦jK9mN1pQ3¦sT»"),
    ("token", "token «aB3dE5gH7¦jK9mN1pQ3¦sT»"),
    ("token", "token=«012345678¦9abcdef01¦23456789a¦bcdef0123¦4567»"),
    ("token", 'access_token = "«ya1bC2dE3¦fG4hI5jK6»"'),
    ("secret", "client_secret: «9f8e7d6c5¦b4a392817¦06»"),
    ("secret", "client_secret=«GkB7~xQ2m¦.PzLw8vNc¦4T»"),
    ("api-key", "SECRET_KEY=«django-in¦secure-k3¦j$h4k5j6h¦7k8j9»"),
    ("api-key", "secret_key_base: «012345678¦9abcdef01¦23456789a¦bcdef0123¦456789abc¦def»"),
    ("secret", "JWT_SECRET=«my5up3rs3¦cr3t»"),
    ("token", "refresh token is «1//0gAbCd¦EfGhIjKlM¦nOpQrStUv»"),
    ("bearer-token", "Authorization: Bearer «abc123def¦456ghi789»"),
    ("authorization", "authorization: token «012345678¦9abcdef01¦23»"),
    ("authorization", "Authorization: Basic «dXNlcjpwY¦XNzd29yZA¦==»"),
    ("bearer-token", '-H "Authorization: Bearer «aB3dE5gH7¦jK9mN1pQ3¦sT»"'),
    ("bearer-token", "bearer «aB3dE5gH7¦jK9mN1pQ3¦sT»"),
    ("connection-string", "postgres://app:«s3cr3t»@db:5432/app"),
    ("connection-string", "mongodb+srv://user:«myR3alP@s¦sw0rd»@cluster0.mongodb.net/x"),
    ("connection-string", "redis://:«p4ssw0rd»@cache:6379/0"),
    ("connection-string", "amqp://guest:«gu3st»@mq"),
    ("connection-string", "https://«aB3dE5gH7¦jK9mN1pQ3¦sT»@github.com/x/y.git"),
    ("password", "jdbc:postgresql://h/db?user=a&password=«hunter2x»"),
    ("api-key", "encryption key: «8f3a9c1e7¦b5d2f4a6c¦8e0b1d3f5¦a7c9e»"),
    ("private-key", "private_key = «0x4c0883a¦69102937d¦6231471b5¦dbb6204fe¦512961708¦2792ae468¦d01a3f362¦318»"),
    ("secret", "webhook secret `«aB3dE5gH7¦jK9mN1pQ3¦sT»`"),
    ("aws-secret-key", "AWS_SECRET_ACCESS_KEY: «wJalrXUtn¦FEMI/K7MD¦ENG/bPxRf¦iCYAAMPLE¦KEYY»"),
    ("aws-secret-key", "aws_secret_access_key = «wJalrXUtn¦FEMI/K7MD¦ENG/bPxRf¦iCYAAMPLE¦KEYY»"),
    ("api-key", "AccountKey=«aB3dE5gH7¦jK9mN1pQ3¦sTaB3dE5g¦H7jK9mN1p¦Q3sTaB3dE¦5gH7jK9mN¦1pQ3sT==»;EndpointSuffix=x"),
    ("api-key", "SharedAccessKey=«aB3dE5gH7¦jK9mN1pQ3¦sT+abc=»"),
    ("token", "//registry.example/:_authToken=«0a1b2c3d-¦4e5f-6789¦-abcd-ef0¦123456789»"),
    ("password", "_password=«aHVudGVyM¦nlhemlu»"),
    ("password", "machine x login y password «hunter2x»"),
    ("password", "sshpass -p «hunter2x» ssh h"),
    ("token", "api token: «550e8400-¦e29b-41d4¦-a716-446¦655440000»"),
    ("api-key", "HEROKU_API_KEY=«550e8400-¦e29b-41d4¦-a716-446¦655440000»"),
    ("password", "ｐａｓｓｗｏｒｄ：«ｈｕｎｔｅｒ２»"),
    ("connection-string", "DATABASE_URL=postgresql://app:«hunter2»@db/app"),
    ("password", "the account is `app` / password `«s3cr3t!x»`"),
    ("password", '{\\"password\\": \\"«hunter2x»\\"}'),
    ("password", 'password: str = "«hunter2x»"'),
    ("password", 'def connect(password="«hunter2x»"):'),
    ("api-key", 'os.environ["API_KEY"] = "«aB3dE5gH7¦jK9mN1p»"'),
    ("password", 'os.environ.get("DB_PASSWORD", "«s3cr3tpw1»")'),
    ("api-key", "- API key (staging): «aB3dE5gH7¦jK9mN1pQ3¦sT»"),
    ("api-key", "- **API key:** «aB3dE5gH7¦jK9mN1pQ3¦sT»"),
    ("secret", "export STRIPE_SECRET=«a1b2c3d4e¦5f6»"),
    ("bearer-token", "Authorization: Bearer «mF_9.B5f-¦4.1JqM»"),
    ("bearer-token", "Authorization: Bearer «abcdefghi¦jklmnop»"),
    ("token", "https://x.blob.core.windows.net/c?sv=2020&sig=«aB3dE5gH7¦jK9mN1pQ3¦sTaB3dE5g¦H7jK9mN1p¦Q3sT%3D»"),
    ("api-key", 'api_keys: ["«aB3dE5gH7¦jK9mN1pQ3¦sT»"]'),
    ("authorization", '"Authorization": "Basic «dXNlcjpwY¦XNz»"'),
    ("password", "password: «a,b;c(d)9»"),
    ("password", 'password: "«a\\"b9cdef»"'),
    ("password", "redis-cli --pass «hunter2x»"),
    ("password", "Contrasena password -> «hunter2x»"),
    ("password", "PASSWORD='«hunter2 x9»'"),
    ("token", "set TOKEN=«aB3dE5gH7¦jK9mN1pQ3¦sT»"),
    ("password", "- password: «Summer2026!»"),
]
INNOCENT = [
    "password: must be 8 characters",
    "password: string",
    "password: str",
    "password: str | None = None",
    "- **password**: hashed with argon2",
    "Password: required, min 8 characters",
    'password=os.environ["DB_PASSWORD"]',
    "password = getpass.getpass()",
    "password = self.password",
    "password=password",
    "connect(user=user, password=user_password)",
    "PASSWORD=$DB_PASSWORD",
    "PASSWORD=${DB_PASSWORD:-x}",
    "password: {{ vault_password }}",
    "password: <your-password>",
    "password: xxxx",
    "password: ********",
    "password: changeme",
    "API_KEY=your-api-key-here",
    "api_key: example",
    "token: <token>",
    "token: $TOKEN",
    "token: ${TOKEN}",
    "token: {{ token }}",
    "token = get_token()",
    "token: string",
    "token = process.env.GITHUB_TOKEN",
    "${{ secrets.GITHUB_TOKEN }}",
    "secrets.GITHUB_TOKEN",
    "password reset flow: redirects to login",
    "Forgot password: redirects to the login page",
    "The key: keep it simple",
    "cache key: sha256:0123456789abcdef0123456789abcdef",
    "key: 0123456789abcdef0123456789abcdef01234567",
    "commit 0123456789abcdef0123456789abcdef01234567",
    "git SHA 0123456789abcdef0123456789abcdef01234567 fixed the token refresh",
    "integrity: sha512-AbCdEfGh0123456789AbCdEfGh0123456789AbCdEfGh0123456789AbCdEfGh0123456789AbCdEfGh012345==",
    "idempotency key 550e8400-e29b-41d4-a716-446655440000",
    "token id 550e8400-e29b-41d4-a716-446655440000",
    "tokens: 1200",
    "max_tokens: 4096",
    "token count = 12345678901234567890",
    "primary_key: user_id",
    "key=lambda x: x",
    'sort_key = "created_at"',
    "the token bucket refill_rate_per_second_limit is used",
    "token validation in src/auth/token_validator_v2.py",
    "password hashing: bcrypt with cost 12",
    "password_hash: argon2id",
    "secret: rotate every 90 days",
    "secret scanning: enabled",
    "keyboard: qwerty123",
    "bearer token is required",
    "Bearer authentication",
    "Authorization: Bearer <token>",
    "Authorization: Bearer $TOKEN",
    "Authorization: Bearer ${TOKEN}",
    "Authorization: Bearer token",
    "https://example.com/path:8080@foo",
    "https://user:${PASSWORD}@host",
    "https://{user}:{pass}@host",
    "https://username:password@example.com/api",
    "ssh://git@github.com:org/repo.git",
    "https://github.com/org/repo/blob/0123456789abcdef0123456789abcdef01234567/x.py",
    "public_key: aB3dE5gH7jK9mN1pQ3sTaB3dE5",
    "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIabcdefghijklmnop",
    "key: arc-1773766661000-enriched-plan",
    "token: design-tokens-v2-migration-plan",
    "design token: --color-primary-500",
    "--token-file /etc/x/token",
    "tokenizer: tiktoken_cl100k_base",
    "api key: stored in AWS Secrets Manager",
    "API key: see 1Password",
    "The API key is read from config.yaml",
    'secret = config.get("secret")',
    "const token = await fetchToken(user.id)",
    "if (password !== confirmPassword) {",
    "password == other",
    "password: z.string().min(8)",
    "password: ['', Validators.required]",
    "this.password = password;",
    "hash_key = hashlib.sha256(key).hexdigest()",
    "DB_PASSWORD_FILE=/run/secrets/db_password",
    "password: /run/secrets/db_password",
    "password_min_length = 12",
    "password policy: 12 characters",
    "`password` field: validated with zod4",
    "PWD=/home/user/project1",
    "pwd: /srv/app2/current",
    "first_pass: done",
    "2 pass: 14 failed: 3",
    "CSRF token: double-submit cookie",
    "token: JWT (RS256)",
    "TOKEN_EXPIRY=3600",
    "key: value",
    "key: SEC-001",
    "keys: a1, b2",
    "foreign key: users.id",
    "secret: Secret<string>",
    "Token type: Bearer",
    "sk-learn-based-model-selection-v2",
    "task-based-decomposition-of-plans-2024",
    "password: !vault |",
    'password: ""',
    "password: null",
    "password: %env(DB_PASSWORD)%",
    "password: process.env.DB_PASSWORD!",
    "password: Optional[str] = None",
    "password: str = Field(..., min_length=8)",
    "password: &str",
    "password: *string",
    "password: SecretString",
    "password: PasswordField",
    "password?: string;",
    'print(f"password: {password}")',
    'f"token={token!r}"',
    '"password": {"type": "string"}',
    '"password": ["Too short"]',
    '{"password": ["is required"]}',
    'label="Password" placeholder="Enter password"',
    '<input type="password">hello',
    "Password: 1Password vault item",
    "password: min. 12 chars",
    "password: 12+ characters",
    "secret: 32 bytes hex",
    "API key: 40 chars",
    'cacheKey = "tenant:8f14e45f-ceea-467f-a9b1-3d2a1b2c3d4e"',
    'cache_key: f"{tenant}:{user_id}:v2"',
    "token: session-8f14e45f-ceea-467f-a9b1-3d2a1b2c3d4e",
    "- **evidence**: src/auth/password.py:12, commit 93ce2417ec",
    "- **evidence**: `tests/test_token.py:88` at 0123456789abcdef0123456789abcdef01234567",
    "- **source**: rune:token-review 93ce2417ec1234567890",
    "two-pass: done",
    "monkey: banana123",
    "Key fingerprint = 0123 4567 89AB CDEF",
    "Bearer RFC6750 tokens",
    "the bearer of this-token-v2",
    "signing key SHA256:AbCdEfGh0123456789AbCdEfGh0123456789AbCdEfGh",
    "deploy key: ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIabcdefghijklmnop",
    "access token expires_in 3600",
    "token budget: 120000 tokens",
    "key = hashlib.sha256(data).hexdigest()[:12]",
    "API key rotation: every 90 days",
    "secret/data/myapp path in vault",
    "password: use argon2id with 64MB",
    "Auth token: stored in ~/.config/app/token.json",
    "token -> src/lib/token-store.ts",
    '"key": "arc-1773766661000"',
    "api_key: settings.api_key,",
    "api_key=api_key",
    "token=self._token,",
    "X-API-Key: <redacted>",
    "password: [REDACTED:PASSWORD]",
    "password: REDACTED",
    "sk-ant-...",
    "OPENAI_API_KEY=sk-...",
    "GITHUB_TOKEN=ghp_...",
    "key:value pairs such as foo:bar",
    "--password-file=/run/secrets/pw1",
    "user: admin, password: (hidden)",
    "talisman key + binary detection",
    "secretName: my-app-tls-2024",
    "kubernetes secret: my-app-secret-v2",
    "token_ids = tokenizer.encode(text)",
]


@pytest.mark.parametrize(("kind", "marked"), SECRETS, ids=[marked for _, marked in SECRETS])
def test_the_secret_is_replaced_and_nothing_else(kind: str, marked: str) -> None:
    plain = marked.replace("¦", "")
    before, _, rest = plain.partition("«")
    secret, _, after = rest.partition("»")

    assert redact(before + secret + after).text == f"{before}[REDACTED:{kind}]{after}"


@pytest.mark.parametrize(("kind", "marked"), SECRETS, ids=[marked for _, marked in SECRETS])
def test_what_was_redacted_stays_as_it_is(kind: str, marked: str) -> None:
    once = redact(marked.replace("¦", "").replace("«", "").replace("»", "")).text

    assert find_secrets(once) == ()


@pytest.mark.parametrize("text", INNOCENT)
def test_what_only_looks_like_a_secret_stays(text: str) -> None:
    assert find_secrets(text) == ()


@pytest.mark.parametrize("text", INNOCENT)
def test_what_only_looks_like_a_secret_stays_in_an_entry_too(text: str) -> None:
    entry = f"### [2026-01-05] Pattern: what was learned\n- **evidence**: {text}\n- {text}\n  {text}\n"

    assert find_secrets(entry) == ()


def test_the_name_may_stand_in_another_case() -> None:
    for name in ("password", "Password", "PASSWORD", "PassWord"):
        assert redact(f"{name}=hunter2x").text == f"{name}=[REDACTED:password]"


@pytest.mark.parametrize("end", ["\n", "\r\n", "", "  \n"])
def test_a_plain_word_is_a_password_where_it_is_all_of_a_line(end: str) -> None:
    assert redact(f"DB_PASSWORD=letmein{end}").text == f"DB_PASSWORD=[REDACTED:password]{end}"


def test_typographic_quotes_and_blanks_are_quotes_and_blanks() -> None:
    assert redact("password:\u00a0\u201chunter2x\u201d.").text == "password:\u00a0\u201c[REDACTED:password]\u201d."


def test_a_field_that_went_through_a_tab_separated_hook_ends_at_the_escaped_line_break() -> None:
    assert redact("- Context: password: hunter2x\\nNext: read it").text == (
        "- Context: password: [REDACTED:password]\\nNext: read it"
    )


def test_several_secrets_in_a_line_are_all_replaced() -> None:
    assert redact("user=a;password=hunter2x;token=" + "aB3dE5gH7" + "jK9mN1pQ3sT" + " ok").text == (
        "user=a;password=[REDACTED:password];token=[REDACTED:token] ok"
    )


def test_a_secret_longer_than_the_look_at_it_goes_as_a_whole() -> None:
    assert redact("client_secret=" + "aB3dE5gH7" * 200 + " end").text == "client_secret=[REDACTED:secret] end"
