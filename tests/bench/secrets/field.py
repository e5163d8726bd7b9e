"""Lines of the kinds that a rule took for a secret, or missed, in public reports; each made for this benchmark.

In a secret line `{p}` is a password, `{w}` a password with signs, `{t}` letters and digits, `{h}` hexadecimal digits and
`{b}` a login in base64, drawn from a seeded generator. An innocent line is complete.
"""

from __future__ import annotations

import base64
import string
from collections.abc import Iterable
from random import Random

from echod.memory.redact import Secret, find_secrets
from tests.bench.secrets.counts import Counts

_BASE = string.ascii_letters + string.digits
_HEX = "0123456789abcdef"

SECRET_LINES = r"""
{"name": "DB_PASSWORD", "value": "{p}"}
{ name = "API_TOKEN", value = "{t}{t}" }
{"key": "client_secret", "value": "{t}{t}"}
<entry key="password">{t}</entry>
<setting name="ApiKey"><value>{t}{t}</value></setting>
<property name="db.password" value="{p}" />
<add key="ApiKey" value="{t}{t}" />
requests.get(url, auth=("ci", "{t}"))
HTTPBasicAuth('ci', '{t}')
request.SetBasicAuth("ci", "{p}")
smtp.login("ci@example.net", "{t}")
DriverManager.getConnection(url, "ci", "{t}")
new PDO($dsn, "ci", "{t}")
new NetworkCredential("ci", "{w}")
mysqli_connect("localhost", "ci", "{t}", "shop")
ConvertTo-SecureString "{w}" -AsPlainText -Force
Password for ci: {t}
The password of the staging database is {t}.
The password was changed to {t} on Monday.
Recovery codes: 8f3k-29dk-x02m, 1a2b-3c4d-5e6f
`ssh-keygen -t ed25519 -N {t} -f key`
`pdftotext -upw {t} a.pdf`
`mount -t cifs -o user=ci%{t} //nas/share /mnt`
`gh secret set DEPLOY --body {t}`
`aws secretsmanager create-secret --name web --secret-string {t}`
`aws ssm put-parameter --name /web/db --value {t} --type SecureString`
`net user ci {t}`
`printf '%s' '{t}' | docker secret create web -`
`gcloud secrets create web --data-file=<(echo {t})`
`wrangler secret put WEB <<< {t}`
SET PASSWORD FOR 'shop'@'%' = '{p}'
bindpw {t}
snmp-server community {t} RO
username ci privilege 15 password 7 {t}
`cf login -u ci -p {t}`
`cypher-shell -u neo4j -p {t}`
`snowsql -a acme -u ci -p {p}`
`poetry publish -u ci -p {t}`
`poetry config http-basic.mirror ci {t}`
`composer config http-basic.repo.example.net ci {t}`
`bundle config set --global gems.example.net ci:{t}`
`bcp shop.dbo.orders out o.csv -U sa -P{t}`
`influx -username ci -password {t}`
`nmcli dev wifi connect lab password {t}`
`wpa_passphrase lab {t}`
`chpasswd <<< 'ci:{t}'`
`passwd --stdin ci <<< {t}`
`echo {t} | kinit ci@EXAMPLE.NET`
`rsync --password-file <(echo {t}) a b::c`
`nuget push a.nupkg -k {t}{t}{t}`
`netlify deploy --auth {t}{t}{t}`
`sonar-scanner -Dsonar.login={h}`
`setenv DB_PASSWORD {t}`
SSHPASS={t} sshpass -e ssh ci@web
ansible_become_pass={t}
<tr><td>Password</td><td>{t}</td></tr>
Put `db.example.net:5432:*:app:{t}` into the file.
Login: ci / {w} on staging.
Log in with ci/{w} there.
The lab is open to ci with password {w} for now.
Passwort: {w}
contraseña: {w}
mot de passe : {w}
пароль: {w}
密码：{w}
パスワード: {w}
senha: {w}
비밀번호: {w}
Log in with docker login -u ci -p {t} registry.example.net before the push.
`podman login --username ci --password {w} quay.example.net`
`helm registry login -u ci -p {t} reg.example.net`
docker login reg.example.net --username=ci --password={p}
`buildah login -p {t} -u bot reg.example.net`
`skopeo copy --src-creds ci:{t} docker://a docker://b`
`skopeo copy --dest-creds=ci:{p} docker://a docker://b`
`mysql -uroot -p{t} shop`
`mysqldump -h db -u root -p{p} --all-databases > all.sql`
`mariadb -u app -p'{w}' shop`
`mysqladmin -u root password {t}`
`redis-cli -h cache -p 6379 -a {t} ping`
`redis-cli --pass {p} info`
`redis-cli AUTH {t}`
`mongosh -u admin -p {t} --authenticationDatabase admin`
`mongodump --host db -u admin -p '{w}' --out /backup`
`sqlcmd -S db -U sa -P {p} -Q 'select 1'`
`sqlcmd -S db -U sa -P '{w}'`
`bcp shop.dbo.orders out o.csv -S db -U sa -P {t}`
`sqlplus shop/{t}@orcl`
`expdp system/{p}@orcl schemas=shop`
`cqlsh -u cassandra -p {t} db`
`clickhouse-client --user app --password {t}`
`ldapsearch -x -D cn=admin,dc=example -w {t} -b dc=example`
`smbclient //nas/share -U backup%{t}`
`rpcclient -U backup%{p} nas`
`lftp -u deploy,{t} ftp.example.net`
`sshpass -p {t} ssh root@web`
`sshpass -p'{w}' scp a web:`
`7z x -p{t} backup.7z`
`unzip -P {p} backup.zip`
`zip -P {t} out.zip a b`
`openssl enc -d -aes-256-cbc -in a -pass pass:{t}`
`openssl pkcs12 -in a.p12 -passin pass:{p} -nodes`
`keytool -list -keystore k.jks -storepass {t}`
`jarsigner -keystore k.jks -storepass {t} -keypass {p} app.jar key`
`htpasswd -bc /etc/nginx/.htpasswd admin {t}`
`rabbitmqctl add_user app {t}`
`rabbitmqctl change_password app {p}`
`rabbitmqadmin -u app -p {t} list queues`
`mosquitto_sub -h mq -u app -P {t} -t '#'`
`ipmitool -H bmc -U root -P {t} power on`
`net user deploy {t} /add`
`xfreerdp /v:win /u:admin /p:{t}`
`cmdkey /add:srv /user:admin /pass:{t}`
`plink -ssh root@web -pw {t} uptime`
`snmpwalk -v3 -u mon -A {t} sw`
`etcdctl --user root:{t} get /`
`curl -u ci:{t} https://ci.example.net/api`
`curl -sSu ci:{p} https://ci.example.net/api`
`curl --user 'ci:{w}' https://ci.example.net/api`
`curl -U proxy:{t} -x proxy:3128 https://example.net`
`curl --proxy-user proxy:{p} https://example.net`
`http -a ci:{t} example.net/api`
`wget --http-user=ci --http-password={t} https://example.net/a`
`wget --user ci --password {t} https://example.net/a`
`vault login {t}{t}`
`ngrok config add-authtoken {t}{t}`
`snyk auth {h}`
`cargo login {t}{t}`
`kubeadm join 10.0.0.1:6443 --token {t}{t}`
`oc login --token={t}{t}`
`twine upload -u ci -p {t} dist/*`
`npm config set //npm.example.net/:_authToken {t}{t}`
`echo '{t}' | docker login --username ci --password-stdin reg.example.net`
`echo "deploy:{t}" | chpasswd`
`echo {t} | sudo -S systemctl restart app`
`dotnet nuget push a.nupkg --api-key {t}{t}`
machine git.example.net login ci password {t}
default login anonymous password {t}
//npm.example.net/:_auth={b}
//npm.example.net/:_authToken={t}{t}
_auth = "{b}"
{"auths": {"reg.example.net": {"auth": "{b}"}}}
requirepass {t}
masterauth {p}
CREATE USER shop IDENTIFIED BY '{t}';
ALTER USER shop IDENTIFIED WITH mysql_native_password BY '{w}';
CREATE ROLE shop LOGIN PASSWORD '{t}';
ALTER ROLE shop WITH PASSWORD '{p}';
db.example.net:5432:shop:app:{t}
The DSN is root:{t}@tcp(127.0.0.1:3306)/shop in the tests.
DSN=app:{p}@tcp(db:3306)/shop?parseTime=true
app:{t}@db.example.net:5432/shop
Connect to admin:{p}@10.1.2.3 from the jump host.
rsync to backup:{t}@localhost works.
jdbc:oracle:thin:shop/{t}@//db:1521/XE
amqp://app:{t}@mq:5672/vhost
redis://:{t}@cache:6379/1
Cookie: session={t}{t}; theme=dark
Set-Cookie: sid={t}{t}; Path=/; HttpOnly
curl -b 'sessionid={t}{t}' https://example.net/
"cookie": "connect.sid=s%3A{t}{t}"
document.cookie = "PHPSESSID={h}"
JSESSIONID={h}{h} in the log
user=admin pass={p} host=web
login: admin, pass: {t}
admin / pw: {t}
pw={p}
pass = {t}
const PW_PASSWORD = process.env.PW || "{w}";
const token = process.env.API_TOKEN ?? '{t}{t}';
DB_PASSWORD: ${DB_PASSWORD:-{p}}
spring.datasource.password=${DB_PASSWORD:{t}}
password = os.environ.get("DB_PASSWORD") or "{p}"
password = os.getenv('DB_PASSWORD', '{t}')
$password = getenv('DB_PASSWORD') ?: '{t}';
password: ENV.fetch('DB_PASSWORD', '{t}')
String password = System.getenv().getOrDefault("DB_PASSWORD", "{t}");
client-key-data: LS0tLS1CRUdJTiBSU0EgUFJJVkFURSBLRVktLS0tLQp{t}{t}{t}
tls.key: LS0tLS1CRUdJTiBQUklWQVRFIEtFWS0tLS0tCk1J{t}{t}{t}
The bot is 1234567890:AA{t}{t:x} in staging.
https://api.telegram.org/bot1234567890:{t35}/sendMessage
https://discord.com/api/webhooks/123456789012345678/{t}{t}{t}{t}
SUPABASE_KEY is sb_secret_{t}{t}
jira uses ATATT3xFfGF0{t}{t}{t}
search by pplx-{t}{t}{t}
gemini AQ.{t}{t}{t}
azure app a1B2Q~{t}{t} until May
nvidia nvapi-{t}{t}{t}
pinecone pcsk_{t}{t}{t}
langsmith lsv2_pt_{h}_{h10}
newrelic NRAK-{T27}
sentry sntrys_{t}{t}{t}
sonar sqp_{h40}
pulumi pul-{h40}
doppler dp.st.prd.{t}{t}{t}
planetscale pscale_pw_{t}{t}{t}
netlify nfp_{t}{t}{t}
fly fm2_{t}{t}{t}
rubygems rubygems_{h48}
buildkite bkua_{h40}
brevo xkeysib-{h64}-{t16}
mailgun key-{h}
resend re_{t8}_{t24}
airtable pat{t14}.{h64}
mailchimp {h}-us12
square sq0atp-{t}{t}
postman PMAK-{h24}-{h34}
terraform {t14}.atlasv1.{t}{t}{t}{t8}
tavily tvly-{t}{t}
jina jina_{t}{t}{t}
figma figd_{t}{t}{t}
linear lin_api_{t}{t}{t}
hubspot pat-na1-{h8}-{h4}-{h4}-{h4}-{h12}
Authorization: Basic {b}
- **Password**: {p}
the password is {p} on staging
smtp_pass: {w}
API key (staging): {t}{t}
{"clientSecret":"{t}{t}"}
export GH_TOKEN={t}{t}
X-Api-Key: {t}{t}
ansible_ssh_pass={p}
password="{w}"
<password>{p}</password>
--password={p}
--token {t}{t}
secret_key_base: {h}{h}
""".strip("\n").split("\n")

INNOCENT_LINES = r"""
| password | string2 |
| password | varchar(255) | not null |
| token | uint256 |
| api_key | header2 |
| password | see auth.py:42 |
| password | auth.py:42 |
| password | L120-L140 |
| password | >=12 |
| password | min8 |
password: string2
"password": "string1"
password: field_2
password: utf8mb4
password: rfc6749
password: TLS1.3
password: python3
password: %1$s
{"name": "password", "value": "string"}
{ name = "DB_PASSWORD", value = var.db_password }
<property name="password" value="${db.password}" />
<entry key="password">changeme</entry>
<input type="password" name="password" value="">
- name: PASSWORD_MIN_LENGTH, value: 12
requests.get(url, auth=("user", "password"))
HTTPBasicAuth(user, token)
await page.login("ci", "wrong-password")
connect("localhost", "5432", "shop")
server.connect("web-1", "/srv/app2")
new PDO($dsn, $user, $password)
The password for the staging database is in the vault.
Password for the demo: see the wiki
The password was changed to comply with policy2.
Recovery codes: 10 per user
recovery code: one-time
`ssh-keygen -t ed25519 -N "" -f key2`
`gh secret set DEPLOY --body "$TOKEN"`
`aws s3 cp a.txt s3://web2/a.txt`
`net user ci /delete`
mnemonic: a short word that helps to recall
machine learning login user2 password reset flow
glc_make_context_with_attributes2
password reset2Flow is slow
the password v2beta1 flow
password OAuth2Provider is the default
The parola of the day is on the board.
senha: definida pelo admin
Login: admin / viewer roles
Log in with user1/role2.
Use `mc alias set lab https://s3.example.net $KEY $SECRET` first.
`nmcli dev wifi connect lab password "$WIFI"`
`passwd --stdin ci <<< "$PW"`
bypass=true2
compass: north42
Stamps come from `date -u +%FT%TZ` and are compared as text.
`date -u +"%Y-%m-%d %H:%M:%S"` prints the same everywhere.
Run `docker run -u 1000:1000 -v .:/src image make`.
`docker run --user 65532:65532 app:1.2.3`
`docker exec -u www-data:www-data web php artisan`
`podman run --user node:node web npm ci`
`kubectl exec -it web -- su -c 'id -u app:app'`
`docker run -p 8080:80 -e MODE=prod web`
`docker build -t web:2 -f Dockerfile .`
`docker compose -p shop2 up`
`chown -R app:app /srv` and `install -o app:app`
`ssh -p 2222 deploy@web.example.net uptime`
`scp -P 2222 a.txt deploy@web:/tmp`
`mkdir -p build/out2 && cp -p a b`
`psql -p 5433 -U app2 shop`
`pg_isready -U ${PGUSER:-app}`
`pg_dump -U app2 -p 5432 shop > a.sql`
`mysql -u root -p shop` asks for it.
`mysql -P 3307 -u root shop`
`mysqldump --protocol=tcp -P 3306 shop`
`redis-cli -p 6380 -n 2 ping`
`mongosh --port 27018 lab2`
`sqlcmd -S tcp:db,1433 -E -Q 'select 1'`
`ffuf -u https://lab2.example.org/FUZZ -w list.txt`
`gobuster dir -u http://lab.example.org:8080/app1`
`sqlmap -u "http://lab.example.org/?id=1" --batch`
`Invoke-RestMethod -Uri "https://example.org/api/v2"`
`python -u worker.py:main`
`uvicorn -u app2:main`
`git push -u origin feature/a1:feature/a2`
`rsync -u a:b/c1 d`
`sort -u a1 a2` and `tar -u`
`curl -u "$CI_USER:$CI_TOKEN" https://example.org`
`curl -u ${USER}:${PASS} https://example.org`
`curl -u user:password https://example.org`
`curl -u <user>:<token> https://example.org`
`curl -A "agent/2.0:x86" https://example.org`
`wget -U "Mozilla/5.0:x" https://example.org`
`docker login -u $CI_USER -p $CI_TOKEN reg`
`docker login --password-stdin < token.txt`
`echo $TOKEN | docker login -u ci --password-stdin`
`helm upgrade web ./chart -p 3`
`unzip -p a.zip b2.txt | head`
`7z a -t7z out.7z dir2`
`openssl rand -base64 32`
`openssl enc -aes-256-cbc -pass env:PW -in a`
`openssl x509 -in cert1.pem -noout -text`
`keytool -list -keystore k.jks -storepass:env STORE_PW`
`nmap -p 1-1024 -A host2`
`snmpwalk -v2c -c public sw1`
`ldapsearch -x -W -D cn=admin,dc=example2`
`net use x: \\nas\share2 /persistent:yes`
`sudo -u postgres createdb shop2`
`useradd -m -s /bin/bash app2`
`cargo login` asks for the token.
`vault login -method=oidc role=dev2`
`vault kv get secret/web2/api`
`npm config set registry https://npm.example.org/v2`
`npm install npm:react@18.2.0`
`oc login https://api.example.org:6443`
stringPreferencesKey("lastOpenedTabIndexV3") is read at start.
intPreferencesKey("onboardingStepV2Done")
booleanPreferencesKey("hasSeenIntroV12")
doubleKey("MaxBolusPerHourFactorV3", 0.5)
val KEY = longKey("lastFullSyncAtMillis2")
queryKey: ['useGetV3InvoicesByAccountId', id]
queryKey: ["orders", "byCustomerIdV2", id]
cacheKey: "useListV2ProductsByTagId"
translationKey: "checkout.step3.payBy3DSecure.title"
i18nKey="settings.profile2.changeEmailV2.label"
The i18n key: cart.item2.removeFromList3.button
message key: errors.validation2.tooShortV2
idempotency key: 01J9ZQ4V7X8M3K2N5P6R7S8T9A
The idempotency key is 01HYB2J3K4M5N6P7Q8R9S0T1V2 in tests.
partition key: tenant#01HYB2J3K4M5N6P7Q8R9S0T1V2
sort key: ORDER#2026-01-02T03:04:05Z
cache key: user:42:profile:v3
row key 01J9ZQ4V7X8M3K2N5P6R7S8T9A
request token bucket: 100 per minute
setUserPassword: writeProcedure,
resetPassword: protectedProcedure
changePassword: passwordMutation,
forgotPassword: "/auth/forgot2"
verifyPassword: comparePasswordHash
updatePassword: userMutationV2
hashPassword: argonHasher
password: passwordSchema
password: loginFormField,
password: userInputType
passwordField: textInputComponent
showPassword: toggleVisibilityState
const password = passwordInputRef
password: yup.string().min(8)
password: z.string().min(12).max(64)
password: faker.internet.password()
password: process.env.E2E_PASSWORD
password: process.env.DB2_PASSWORD!
password: import.meta.env.VITE_PW2
password: config.auth.db2.password
password: settings.DB1_PASSWORD
password = os.environ["DB2_PASSWORD"]
password = os.getenv("DB2_PASSWORD", "")
password: ${DB_PASSWORD}
password: ${DB_PASSWORD:-}
password: ${DB_PASSWORD:?set it}
password: ${{ secrets.DB2_PASSWORD }}
password = var.db2_password
password = data.aws_secretsmanager_secret_version.db2.secret_string
password: !vault |
password_hash: $2b$12$abcdefghijklmnopqrstuv
const t = process.env.TOKEN || "";
const key = process.env.API_KEY || "your-api-key"
token: process.env.TOKEN ?? null
pass: 12 fail: 3
2nd pass: compile3
first pass: done, second pass: 7 files
pass: string
pass: true
pass=ok
pass: all12
Tests pass: 214/214
pw: boolean
pw = page_width2
pass --verbose2 to see more
| Field | Password |
| Name | Type | Password |
| --- | --- | --- |
Cookie: theme=dark; lang=en
Set-Cookie: session=; Max-Age=0; Path=/
cookie: session=<token>
Cookie: name=value
The cookie: SameSite=Lax; Secure
cookies are set with Path=/app2
curl -b cookies2.txt https://example.org
sessionid=8f14e45f-ceea-467f-a9b1-3d2a1b2c3d4e
session_id=01J9ZQ4V7X8M3K2N5P6R7S8T9A
certificate-authority-data: LS0tLS1CRUdJTiBDRVJUSUZJQ0FURS0tLS0tCk1JSUM1ekNDQWMrZ0F3
client-certificate-data: LS0tLS1CRUdJTiBDRVJUSUZJQ0FURS0tLS0tCk1JSURJVENDQWdtZ0F3
machine learning models need a password policy
machine web1 login deploy
default login page has a password field
always-auth=true
_auth is read from the environment
"auth": "required"
"auth": "bearer"
node:20-alpine@sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef
image: redis:7.2@sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef
git@github.com:org/repo2.git
deploy@web2.example.org:/srv/app
npm:react-dom@18.3.1
uses: actions/checkout@v4
jsr:@std/path@1.0.6
mailto:team2@example.org
alice:bob@example.org is no login
http://localhost:3000/@fs/app2
The meeting is at 10:30@office2
registry.example.org:5000/web@v2
postgres://app:${PGPASSWORD}@db/shop
root:password@tcp(db:3306)/shop
user:pass@tcp(localhost:3306)/db
requirepass is set in redis.conf
ALTER ROLE shop PASSWORD NULL
ALTER USER shop IDENTIFIED BY '<password>'
CREATE USER shop IDENTIFIED BY '${SHOP_PASSWORD}'
PASSWORD 'required'
commit 0123456789abcdef0123456789abcdef01234567 moved the key
The key-0123 range and key-value stores
patch pat2 and pat3 of the series
sqp_ is the prefix of Sonar tokens
tokens begin with ATATT3 or sb_secret_
AQ.js and Q~ are no tokens
bot2 posts to the channel
the bot 1234567890 has no token here
re_match and re_search_all are helpers
npm_config_registry and hf_hub_download
secret_manager_client_for_the_project
api_key_header_name_for_requests
The secret is kept in Vault under kv/web2
token: see 1Password, item web2
access token lifetime: 15min
refresh token rotation: on2
CSRF token: csrfTokenMiddlewareV2
design token: spacing.level2.inner
tokenizer key: cl100k_base
keyboard shortcut key: Ctrl+Shift+P2
foreign key: orders.customer_id2
primary key: id BIGINT
object key: uploads/2026/01/a1.png
S3 key: backups/2026-01-02/dump2.sql.gz
ssh key: ~/.ssh/id_ed25519
public key: age1qyqszqgpqyqszqgpqyqszqgpqyqszqgpqyqszqgpqyqszqgpqyqs3290gq
sort_key=lambda item2: item2.name
key=itemgetter(1)
encryption key: stored in KMS, alias/web2
signing key: rotated every 90d
API key: 40 characters, hex
Bearer tokens expire after 3600s
Authorization: Bearer ${TOKEN}
Authorization: Basic <base64>
password: at least 12 characters, 1 digit
Password must contain A-Z, 0-9
The password reset link is valid 24h
secrets.token_urlsafe(32) makes one
""".strip("\n").split("\n")


def fill_line(line: str, random: Random) -> tuple[str, list[str]]:
    """Return the line with its values, and the values."""
    values: list[str] = []
    pieces: list[str] = []
    position = 0
    while position < len(line):
        end = line.find("}", position)
        spec = line[position + 1 : end] if line[position] == "{" and end > 0 else ""
        value = _value(spec, random)
        if value is None:
            pieces.append(line[position])
            position += 1
            continue
        values.append(value)
        pieces.append(value)
        position = end + 1
    return "".join(pieces), values


def _value(spec: str, random: Random) -> str | None:
    if spec == "p":
        return f"{random.choice(['Winter', 'hunter', 'Dragon', 'sunny'])}{random.choice('!_#')}{random.randint(100, 9999)}x"
    if spec == "w":
        return "K" + "".join(random.choices(_BASE + "!#%*_-+?", k=12)) + "7!z"
    if spec == "b":
        return base64.b64encode(f"ci:{''.join(random.choices(_BASE, k=15))}".encode()).decode()
    alphabet, length = {"t": (_BASE, 18), "h": (_HEX, 32), "T": (string.ascii_uppercase + string.digits, 27)}.get(
        spec[:1], ("", 0)
    )
    if not alphabet or (spec[1:] and not spec[1:].isdigit() and spec != "t:x"):
        return None
    if spec == "t:x":
        length = 15
    drawn = "".join(random.choices(alphabet, k=int(spec[1:]) if spec[1:].isdigit() else length))
    return drawn if alphabet == _HEX else "a7K" + drawn[3:]


def count_field(each: int = 5) -> tuple[Counts, int, int]:
    """Return the counts of the secret lines, and how many innocent lines of how many were changed."""
    random = Random(19)
    counts = Counts()
    for line in SECRET_LINES:
        for _ in range(each):
            text, values = fill_line(line, random)
            spans = find_secrets(text)
            left = [value for value in values if not _covers(text, value, spans)]
            counts.found += not left
            counts.missed += bool(left)
            counts.places += [f"missed: in a line like {line}"] if left else []
    wrong = [line for line in INNOCENT_LINES if find_secrets(line)]
    counts.wrong = len(wrong)
    counts.places += [f"wrong: {line}" for line in wrong]
    return counts, len(wrong), len(INNOCENT_LINES)


def _covers(text: str, value: str, spans: Iterable[Secret]) -> bool:
    start = text.index(value)
    return any(span.start <= start and start + len(value) <= span.end for span in spans)
