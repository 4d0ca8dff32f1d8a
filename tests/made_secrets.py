"""Secrets that nobody has, and texts that hold none.

Each is put together from a table here, so that no file holds what looks like a secret. In a table
`$a20` stands for 20 letters and digits, `$h` for hexadecimal digits, `$u` for capitals and digits,
`$n` for digits, `$b` for base64 of so many bytes, `$p` for a password and `$t` for a token.
"""

import base64
import random
import re
import string

HEX = "0123456789abcdef"
LETTERS = {
    "a": string.ascii_letters + string.digits,
    "h": HEX,
    "u": string.ascii_uppercase + string.digits,
    "n": "123456789",
}

PROVIDERS = """
anthropic-key: sk-ant-api03-$a80
openai-key: sk-proj-$a48
openai-key (old): sk-$a48
openrouter-key: sk-or-v1-$h64
huggingface-token: hf_$a34
groq-key: gsk_$a52
xai-key: xai-$a80
perplexity-key: pplx-$a48
replicate-token: r8_$a37
langsmith-key: lsv2_pt_$h32_$h10
aws-access-key: AKIA$u16
aws-access-key (temporary): ASIA$u16
google-api-key: AIza$a35
google-oauth-secret: GOCSPX-$a28
google-access-token: ya29.$a60
azure-storage-key: AccountKey=$b64
azure-sas: https://x.blob.core.windows.net/c/b?sv=2022-11-02&sig=$a40%3D
azure-client-secret: Zb48Q~$a34
digitalocean-token: dop_v1_$h64
databricks-token: dapi$h32
alibaba-access-key: LTAI$a20
signed-url: https://b.s3.amazonaws.com/k?X-Amz-Signature=$h64
github-token: ghp_$a36
github-token (fine): github_pat_$a22_$a59
gitlab-token: glpat-$a20
npm-token: npm_$a36
pypi-token: pypi-AgEIcHlwaS5vcmc$a80
rubygems-key: rubygems_$h48
docker-token: dckr_pat_$a27
bitbucket-token: ATBB$a32
atlassian-token: ATATT3$a180
linear-key: lin_api_$a40
notion-token: secret_$a43
figma-token: figd_$a40
postman-key: PMAK-$h24-$h34
vault-token: hvs.$a90
terraform-token: $a14.atlasv1.$a67
pulumi-token: pul-$h40
grafana-token: glsa_$a32_$h8
newrelic-key: NRAK-$u27
doppler-token: dp.pt.$a43
age-key: AGE-SECRET-KEY-1$u58
slack-token: xoxb-$n12-$a24
slack-token (app): xapp-1-A$u10-$h64
slack-webhook: https://hooks.slack.com/services/T$u8/B$u8/$a24
discord-webhook: https://discord.com/api/webhooks/$n18/$a68
discord-token: M$a23.$a6.$a38
telegram-token: $n9:AA$a33
stripe-key: sk_live_$a24
stripe-key (test): rk_test_$a24
stripe-webhook-secret: whsec_$a32
twilio-key: SK$h32
sendgrid-key: SG.$a22.$a43
mailgun-key: key-$h32
mailchimp-key: $h32-us14
shopify-token: shpat_$h32
square-token: sq0atp-$a43
facebook-token: EAAC$a120
airtable-token: pat$a14.$h64
jwt: $jwt
tavily-key: tvly-dev-$a32
nvidia-key: nvapi-$a64
pinecone-key: pcsk_$a60
e2b-key: e2b_$h40
langfuse-key: sk-lf-$h8-$h4-$h4-$h4-$h12
bedrock-key: ABSK$a120
supabase-key: sbp_$h40
supabase-key (new): sb_secret_$a31
planetscale-token: pscale_tkn_$a43
netlify-token: nfp_$a36
fly-token: fm2_$a120
1password-token: ops_eyJ$a200
posthog-key: phx_$a43
mapbox-token: sk.eyJ$a60.$a22
"""
"""By the kind that a secret is redacted as."""

SAID = r"""
env file: DB_PASSWORD=$p\nDEBUG=1
env file: export KEY_PASSPHRASE="$p"
env file: SMTP_PASS=$p
env file: A=1\nSTRIPE_SECRET=$t\n
YAML: database:\n  password: $p\n  port: 5432\n
YAML:   dbPassword: "$p"\n
YAML: client_secret: $t\n
YAML: password: |\n  $p\nport: 1\n
JSON: {"user": "ann", "db_password": "$p"}
JSON: "refreshToken": "$t",
JSON: {"user":"a","pass":"7$p"}
JSON in JSON: {\"user\": \"ann\", \"root-password\": \"$p\"}
JSON in JSON in JSON: \\\"smtp.password\\\": \\\"$p\\\"
JSON in JSON: {"text": "a\nTOKEN=$t\nb"}
source code: api_key = '$t'
source code: config.clientSecret = "$t";
source code: Client(access_token="$t", retries=3)
source code: secret_key: str = '$t'
properties: spring.datasource.password=$p\n
INI: [smtp]\npassword = $p\n
XML: <add name="x" connectionString="Server=db;User Id=sa;Password=$p;" />
XML: <db:Password>$p</db:Password>
XML: <ns:clientSecret type="text">\n  $t\n</ns:clientSecret>
XML: <property name="hibernate.connection.password">$p</property>
Markdown: **Password:** $p
Markdown: * **API key**: `$t`
Markdown: | Password | $p |
Markdown: | DB_PASSWORD | `$p` |
name and value: - name: DB_PASSWORD\n  value: $p\n
name and value: {"name":"DB_PASSWORD","value":"$p"}
name and value: {"ParameterKey":"DbPassword","ParameterValue":"$p"}
name and value: {"name": "DB_PASSWORD", "type": "string", "value": "$p"}
flag: tool --password $p --verbose
flag: tool --client-secret=$t
flag: tool --token '$t'
flag: ["tool", "--api-key", "$t"]
command: mysql -h db -u root -p$p shop
command: sshpass -p $p ssh ann@host
command: docker login -u ann -p $p registry.example.com
command: redis-cli -h cache -a $p ping
SQL: CREATE USER 'ann'@'%' IDENTIFIED BY '$p';
SQL: ALTER ROLE ann WITH LOGIN PASSWORD '$p';
address: postgresql://ann:$t@db.example.com/shop
address: URL=redis://:$a12@db:1234
address: git clone https://$a40@github.com/x/y.git
address: GET /v1/x?user=1&api_key=$t&page=2
connection string: Server=db;Database=x;User Id=ann;Password=$a12;Encrypt=yes
connection string: host=db user=ann password=$p dbname=x
connection string: Endpoint=sb://x/;SharedAccessKeyName=r;SharedAccessKey=$b32
header: Authorization: Bearer $t
header: Authorization: Basic $basic
header: Authorization: token $h40
header: {"Authorization": "$t"}
cookie: Cookie: theme=dark; sessionid=$t; lang=en
cookie: Set-Cookie: JSESSIONID=$u32; Path=/; HttpOnly
cookie: connect.sid=s%3A$t
file of a tool: machine api.example.com\n  login ann\n  password $p\n
file of a tool: {"auths": {"r.io": {"auth": "$basic"}}}
file of a tool: //registry.npmjs.org/:_authToken=$t
other language: 数据库密码：$p
other language: 请把管理员密码改成$p。然后重启
other language: 访问令牌为$t，请勿外传
other language: APIキー：$t，端口是5433
other language: パスワードは$pです
other language: 비밀번호는 $p입니다
other language: contraseña: $p
other language: das Passwort lautet $a9
other language: mot de passe : « $p »
other punctuation: DB_PASSWORD=$p，然后重启
other punctuation: password: $p—never touch prod with it.
other punctuation: password: “$p”, keep it
prose: The password for the staging server is $p, please use it.
prose: and the api_key is "$t".
prose: our AWS secret is $a40 for now
prose: my api key is $t
plain word: DB_PASSWORD=swordfish
plain word: {"password": "swordfish"}
number: {"password": $n8}
known to be missed: password: swordfish\n
known to be missed: SECRET="short"
known to be missed: password: |\n  one2Line\n  $p\nport: 1
known to be missed: Password - $p
known to be missed: use $p as the password
known to be missed: login("ann", "$p")
known to be missed: ConvertTo-SecureString "$p" -AsPlainText
known to be missed: echo 'root:$p' | chpasswd
known to be missed: postgres://ann:ab9K/$p@h/db
known to be missed: <password>a<$p</password>
"""
"""Texts in which a secret is told by what stands around it, by kind of place."""

HARMLESS = r"""
hashes: commit $h40
hashes: md5sum $h32  a.txt
hashes: "integrity": "sha512-$b64"
hashes: ETag: "$h32"
hashes: "sha": "$h40"
hashes: --hash=sha256:$h64
hashes: aws secret $h40
ids: id: $h8-$h4-$h4-$h4-$h12
ids: request-id $h8-$h4-$h4-$h4-$h12
ids: "thread_id": "$h8-$h4-$h4-$h4-$h12"
ids: toolu_$a24
ids: chatcmpl-$a29
ids: run-$h8-$h4-$h4-$h4-$h12
ids: AC$h32
types and signatures: password: str
types and signatures: password: str | None = None
types and signatures: def login(user: str, password: str) -> Token:
types and signatures: secret: SecretStr
types and signatures: api_key: Annotated[str, Field()]
types and signatures: private String password;
types and signatures: public function setPassword(string $password): void
variables and calls: password = os.environ["X"]
variables and calls: password=os.getenv('DB_PASSWORD')
variables and calls: token = request.headers.get('X-Auth-Token')
variables and calls: api_key=settings.API_KEY
variables and calls: self.password = password
variables and calls: secret_key = config['secret_key']
variables and calls: PASSWORD=$(cat /run/secrets/db)
placeholders: <password>
placeholders: <password>your-password</password>
placeholders: **Password:** required
placeholders: - name: DB_PASSWORD\n  value: changeme
placeholders: {"name": "page_token", "value": "abc123def456"}
placeholders: description: |\n  hV7kQ2mZ9xW4pT1r
placeholders: os.getenv("DB_PASSWORD", "changeme")
talk: The password is required.
talk: the token is invalid
talk: The api_key is needed, see section 3.2.1
talk: the secret is out
talk: Reset your password: click the link.
talk: I forgot my password; please help.
talk: the secret: work hard
token counts: max_tokens=4096
token counts: max_tokens: 100000
token counts: token_count = 51234567
token counts: input_token_count: 99
token counts: token budget=4000
token counts: トークン数：8000
names: primary_key=True
names: foreign_key='user.id'
names: cache_key: user:123:v2
names: next_token=abc123def456ghi789
names: pad_token = "<pad1>"
names: password_file: /run/secrets/db1
names: secret_name: db-credentials-2
public keys: ssh-rsa AAAAB3NzaC1yc2E$b90 ann@host
public keys: ssh-ed25519 AAAAC3NzaC1lZDI1$b30
public keys: -----BEGIN PUBLIC KEY-----\n$b48\n-----END PUBLIC KEY-----
public keys: -----BEGIN CERTIFICATE-----\n$b48\n-----END CERTIFICATE-----
public keys: if '-----BEGIN RSA PRIVATE KEY-----' in text: raise ValueError
addresses: https://example.com:8080/a?b=c
addresses: https://ann@example.com/x
addresses: mailto:ann@example.com
addresses: postgresql://localhost/db
addresses: ssh -p 2222 ann@host
addresses: docker run -p 8080:80 image
addresses: curl -u ann https://x
"""
"""Texts that hold none, though they look or sound like it, by what they are."""


class Made:
    """Random strings of given forms; the same for the same seed."""

    def __init__(self, seed: int = 7) -> None:
        self._random = random.Random(seed)

    def of(self, letters: str, count: int) -> str:
        """So many of these letters; a digit and letters of both cases among them, if they may."""
        made = [self._random.choice(letters) for _ in range(count)]
        for place, kind in enumerate(
            (string.digits, string.ascii_lowercase, string.ascii_uppercase)
        ):
            possible = [one for one in letters if one in kind]
            if possible and count > 8:
                made[2 * place + 1] = self._random.choice(possible)
        return "".join(made)

    def alnum(self, count: int) -> str:
        """Letters and digits."""
        return self.of(LETTERS["a"], count)

    def hex(self, count: int) -> str:
        """Hexadecimal digits."""
        return self.of(HEX, count)

    def base64(self, count: int) -> str:
        """Base64 of so many random bytes."""
        return base64.b64encode(self._random.randbytes(count)).decode()

    def password(self) -> str:
        """One that a person might use."""
        return self.alnum(5) + "!" + self.alnum(4)

    def jwt(self) -> str:
        """A signed token; nobody's."""
        parts = (b'{"alg":"HS256","typ":"JWT"}', b'{"sub":"1234567890","name":"x"}')
        head = [base64.urlsafe_b64encode(part).decode().rstrip("=") for part in parts]
        return ".".join([*head, self.alnum(43)])

    def pem(self, kind: str = "RSA PRIVATE KEY", lines: int = 12) -> str:
        """A private key of nobody."""
        body = "\n".join(self.base64(48) for _ in range(lines))
        return f"{'-' * 5}BEGIN {kind}{'-' * 5}\n{body}\n{'-' * 5}END {kind}{'-' * 5}"

    def filled(self, form: str) -> tuple[str, str]:
        """A row of a table with its secrets made, and the first of them; empty for none."""
        made: list[str] = []

        def one(match: re.Match[str]) -> str:
            kind, count = match["kind"], int(match["count"] or 0)
            pair = base64.b64encode(f"ann:{self.password()}".encode()).decode()
            texts = {"p": self.password(), "t": self.alnum(32), "jwt": self.jwt(), "basic": pair}
            texts["b"] = self.base64(count)
            made.append(texts[kind] if kind in texts else self.of(LETTERS[kind], count))
            return made[-1]

        forms = r"\$(?:(?P<kind>basic|jwt|t\b|p(?![a-z])|[ahunb](?=\d))(?P<count>\d*))"
        return re.sub(forms, one, form), made[0] if made else ""


def rows(table: str) -> list[tuple[str, str]]:
    """The rows of a table, each with its first column, and its line ends as such."""
    split = (line.split(": ", 1) for line in table.strip("\n").split("\n"))
    return [(kind, re.sub(r"(?<!\\)\\([nt])", _line_end, text)) for kind, text in split]


def _line_end(match: re.Match[str]) -> str:
    return {"n": "\n", "t": "\t"}[match[1]]


def provider_secrets(made: Made) -> dict[str, str]:
    """One secret of each provider's form, by the kind that it is redacted as."""
    return {kind: made.filled(form)[0] for kind, form in rows(PROVIDERS)}


def said_secrets(made: Made) -> list[tuple[str, str, str]]:
    """Texts in which a secret is told by what stands around it: kind of place, text, the secret."""
    table = [(place, *made.filled(form)) for place, form in rows(SAID)]
    words = ("swordfish", "short")
    table = [
        (place, text, secret or next(word for word in words if word in text))
        for place, text, secret in table
    ]
    token = "ghp" + "_" + made.alnum(36)
    for hidden in (
        "".join(f"\\u{ord(c):04x}" for c in token),
        token[:8] + "\u200b" + token[8:],
        "".join(f"\\x{ord(c):02x}" for c in token),
    ):
        table.append(("escaped", hidden, token))
    for kind in ("RSA PRIVATE KEY", "OPENSSH PRIVATE KEY", "PGP PRIVATE KEY BLOCK"):
        pem = made.pem(kind)
        line = pem.split("\n")[6]
        table.append(("private key", f"$ cat key\n{pem}\n$ ls", line))
        table.append(("private key", '"key": "' + pem.replace("\n", "\\n") + '\\n"', line))
        table.append(("private key", pem.replace("\n", "\n      "), line))
        table.append(("private key", "\n".join(pem.split("\n")[:6]), pem.split("\n")[4]))
        table.append(("private key", "\n".join(pem.split("\n")[6:]), pem.split("\n")[8]))
    return table


def no_secrets(made: Made) -> list[tuple[str, str]]:
    """Texts that hold none, though they look or sound like it: what it is, and the text."""
    image = base64.b64encode(b"\x89PNG\r\n\x1a\n" + random.Random(3).randbytes(6_000)).decode()
    files = [f"data:image/png;base64,{image}", f'"data": "{image[:3000]}"']
    return [(kind, made.filled(form)[0]) for kind, form in rows(HARMLESS)] + [
        ("encoded files", text) for text in files
    ]
