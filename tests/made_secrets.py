"""Secrets that nobody has: each is put together here, so that no file holds what looks like one."""

import base64
import random
import string

ALNUM = string.ascii_letters + string.digits
HEX = "0123456789abcdef"


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
        return self.of(ALNUM, count)

    def hex(self, count: int) -> str:
        """Hexadecimal digits."""
        return self.of(HEX, count)

    def upper(self, count: int) -> str:
        """Capitals and digits."""
        return self.of(string.ascii_uppercase + string.digits, count)

    def base64(self, count: int) -> str:
        """Base64 of so many random bytes."""
        return base64.b64encode(self._random.randbytes(count)).decode()

    def password(self) -> str:
        """One that a person might use."""
        return self.alnum(5) + "!" + self.alnum(4)

    def jwt(self) -> str:
        """A signed token; nobody's."""
        head = base64.urlsafe_b64encode(b'{"alg":"HS256","typ":"JWT"}').decode().rstrip("=")
        body = base64.urlsafe_b64encode(b'{"sub":"1234567890","name":"x"}').decode().rstrip("=")
        return f"{head}.{body}.{self.alnum(43)}"

    def pem(self, kind: str = "RSA PRIVATE KEY", lines: int = 12) -> str:
        """A private key of nobody."""
        body = "\n".join(self.base64(48) for _ in range(lines))
        return f"{'-' * 5}BEGIN {kind}{'-' * 5}\n{body}\n{'-' * 5}END {kind}{'-' * 5}"


def provider_secrets(made: Made) -> dict[str, str]:
    """One secret of each provider's form, by the kind that it is redacted as."""
    a, h = made.alnum, made.hex
    return {
        "anthropic-key": "sk-" + "ant-api03-" + a(80) + "AA",
        "openai-key": "sk-" + "proj-" + a(48),
        "openai-key (old)": "sk-" + a(48),
        "openrouter-key": "sk-" + "or-v1-" + h(64),
        "huggingface-token": "hf" + "_" + a(34),
        "groq-key": "gsk" + "_" + a(52),
        "xai-key": "xai" + "-" + a(80),
        "perplexity-key": "pplx" + "-" + a(48),
        "replicate-token": "r8" + "_" + a(37),
        "langsmith-key": "lsv2" + "_pt_" + h(32) + "_" + h(10),
        "aws-access-key": "AKIA" + made.upper(16),
        "aws-access-key (temporary)": "ASIA" + made.upper(16),
        "google-api-key": "AIza" + a(35),
        "google-oauth-secret": "GOCSPX" + "-" + a(28),
        "google-access-token": "ya29" + "." + a(60),
        "azure-storage-key": "AccountKey=" + made.base64(64),
        "azure-sas": "https://x.blob.core.windows.net/c/b?sv=2022-11-02&sig=" + a(40) + "%3D",
        "azure-client-secret": a(3) + "8Q~" + a(34),
        "digitalocean-token": "dop" + "_v1_" + h(64),
        "databricks-token": "dapi" + h(32),
        "alibaba-access-key": "LTAI" + a(20),
        "signed-url": "https://b.s3.amazonaws.com/k?X-Amz-Signature=" + h(64),
        "github-token": "ghp" + "_" + a(36),
        "github-token (fine)": "github" + "_pat_" + a(22) + "_" + a(59),
        "gitlab-token": "glpat" + "-" + a(20),
        "npm-token": "npm" + "_" + a(36),
        "pypi-token": "pypi" + "-AgEIcHlwaS5vcmc" + a(80),
        "rubygems-key": "rubygems" + "_" + h(48),
        "docker-token": "dckr" + "_pat_" + a(27),
        "bitbucket-token": "ATBB" + a(32),
        "atlassian-token": "ATATT3" + a(180),
        "linear-key": "lin" + "_api_" + a(40),
        "notion-token": "secret" + "_" + a(43),
        "figma-token": "figd" + "_" + a(40),
        "postman-key": "PMAK" + "-" + h(24) + "-" + h(34),
        "vault-token": "hvs" + "." + a(90),
        "terraform-token": a(14) + ".atlasv1." + a(67),
        "pulumi-token": "pul" + "-" + h(40),
        "grafana-token": "glsa" + "_" + a(32) + "_" + h(8),
        "newrelic-key": "NRAK" + "-" + made.upper(27),
        "doppler-token": "dp" + ".pt." + a(43),
        "age-key": "AGE-SECRET" + "-KEY-1" + made.upper(58),
        "slack-token": "xoxb" + "-" + made.of("0123456789", 12) + "-" + a(24),
        "slack-token (app)": "xapp" + "-1-A" + made.upper(10) + "-" + h(64),
        "slack-webhook": "https://hooks.slack.com/services/T"
        + made.upper(8)
        + "/B"
        + made.upper(8)
        + "/"
        + a(24),
        "discord-webhook": "https://discord.com/api/webhooks/"
        + made.of("123456789", 18)
        + "/"
        + a(68),
        "discord-token": "M" + a(23) + "." + a(6) + "." + a(38),
        "telegram-token": made.of("123456789", 9) + ":AA" + a(33),
        "stripe-key": "sk" + "_live_" + a(24),
        "stripe-key (test)": "rk" + "_test_" + a(24),
        "stripe-webhook-secret": "whsec" + "_" + a(32),
        "twilio-key": "SK" + h(32),
        "sendgrid-key": "SG" + "." + a(22) + "." + a(43),
        "mailgun-key": "key" + "-" + h(32),
        "mailchimp-key": h(32) + "-us14",
        "shopify-token": "shpat" + "_" + h(32),
        "square-token": "sq0atp" + "-" + a(43),
        "facebook-token": "EAAC" + a(120),
        "airtable-token": "pat" + a(14) + "." + h(64),
        "jwt": made.jwt(),
        "tavily-key": "tvly" + "-dev-" + a(32),
        "nvidia-key": "nvapi" + "-" + a(64),
        "pinecone-key": "pcsk" + "_" + a(60),
        "e2b-key": "e2b" + "_" + h(40),
        "langfuse-key": "sk-lf" + f"-{h(8)}-{h(4)}-{h(4)}-{h(4)}-{h(12)}",
        "bedrock-key": "ABSK" + a(120),
        "supabase-key": "sbp" + "_" + h(40),
        "supabase-key (new)": "sb" + "_secret_" + a(31),
        "planetscale-token": "pscale" + "_tkn_" + a(43),
        "netlify-token": "nfp" + "_" + a(36),
        "fly-token": "fm2" + "_" + a(120),
        "1password-token": "ops" + "_eyJ" + a(200),
        "posthog-key": "phx" + "_" + a(43),
        "mapbox-token": "sk" + ".eyJ" + a(60) + "." + a(22),
    }


def said_secrets(made: Made) -> list[tuple[str, str, str]]:
    """Texts in which a secret is told by what stands around it: kind of place, text, the secret."""
    p, t = made.password, lambda: made.alnum(32)
    found: list[tuple[str, str, str]] = []

    def add(place: str, text: str, secret: str) -> None:
        assert "{}" in text
        found.append((place, text.replace("{}", secret), secret))

    for (
        name
    ) in "DB_PASSWORD MYSQL_ROOT_PASSWORD SMTP_PASS REDIS_PWD ADMIN_PASSWD KEY_PASSPHRASE".split():
        add("env file", f"{name}={{}}\nDEBUG=1", p())
        add("env file", f'export {name}="{{}}"', p())
    for (
        name
    ) in "API_KEY STRIPE_SECRET AUTH_TOKEN JWT_SECRET AWS_SECRET_ACCESS_KEY NPM_TOKEN".split():
        add("env file", f"A=1\n{name}={{}}\n", t())
        add("env file", f"docker run -e {name}={{}} image", t())
    for name in "password db_password dbPassword passwd root-password smtp.password".split():
        add("YAML", f"database:\n  {name}: {{}}\n  port: 5432\n", p())
        add("YAML", f'  {name}: "{{}}"\n', p())
        add("JSON", f'{{"user": "ann", "{name}": "{{}}"}}', p())
        add("JSON in JSON", f'{{\\"user\\": \\"ann\\", \\"{name}\\": \\"{{}}\\"}}', p())
        add("JSON in JSON in JSON", f'\\\\\\"{name}\\\\\\": \\\\\\"{{}}\\\\\\"', p())
    for (
        name
    ) in "api_key apiKey clientSecret client_secret access_token refreshToken secret_key".split():
        add("YAML", f"{name}: {{}}\n", t())
        add("JSON", f'"{name}": "{{}}",', t())
        add("source code", f"{name} = '{{}}'", t())
        add("source code", f'config.{name} = "{{}}";', t())
        add("source code", f'Client({name}="{{}}", retries=3)', t())
        add("source code", f"{name}: str = '{{}}'", t())
    add("source code", "const password = `{}`;", p())
    add("source code", 'password := "{}"', p())
    add("source code", "$password = '{}';", p())
    add("source code", ":password => '{}'", p())
    add("source code", 'os.environ["DB_PASSWORD"] = "{}"', p())
    add("source code", 'setPassword: "{}"', p())
    add("properties", "spring.datasource.password={}\n", p())
    add("INI", "[smtp]\npassword = {}\n", p())
    add("XML", '<add name="x" connectionString="Server=db;User Id=sa;Password={};" />', p())
    for name in ("password", "db:Password", "dbPassword"):
        add("XML", f"<{name}>{{}}</{name}>", p())
    add("XML", '<ns:clientSecret type="text">\n  {}\n</ns:clientSecret>', t())
    for text in ("**Password:** {}", "- **Password**: `{}`", "__password__: {}"):
        add("Markdown", text, p())
    add("Markdown", "* **API key**: `{}`", t())
    add("name and value", "- name: DB_PASSWORD\n  value: {}\n", p())
    add("name and value", '- name: DB_PASSWORD\n  value: "{}"\n', p())
    add("name and value", '{"name":"DB_PASSWORD","value":"{}"}', p())
    add("YAML", "password: |\n  {}\nport: 1\n", p())
    add("YAML", "apiToken: >-\n    {}", t())
    add("source code", 'client.setPassword("{}")', p())
    add("source code", 'os.getenv("DB_PASSWORD", "{}")', p())
    for text in (
        '{"key":"DB_PASSWORD","value":"{}"}',
        '{"Name": "DB_PASSWORD", "Value": "{}"}',
        '{"ParameterKey":"DbPassword","ParameterValue":"{}"}',
        '{"name": "DB_PASSWORD", "type": "string", "value": "{}"}',
        '{"value": "{}", "enabled": true, "name": "DB_PASSWORD"}',
        "- name: DB_PASSWORD\n  # set by ops\n  value: {}\n",
        "- value: {}\n  name: DB_PASSWORD\n",
        "env: {name: DB_PASSWORD, value: {}}",
        'set {\n  name = "auth.password"\n  value = "{}"\n}',
        '"- name: DB_PASSWORD\\n  value: {}\\n"',
    ):
        add("name and value", text, p())
    for text in (
        '<property name="hibernate.connection.password">{}</property>',
        '<property name="password" value="{}"/>',
        '<add key="DbPassword" value="{}" />',
        "<key>password</key>\n\t<string>{}</string>",
        "<name>db.password</name><value>{}</value>",
        "<password><![CDATA[{}]]></password>",
        "<td>Password</td><td>{}</td>",
        "<b>Password:</b> {}<br>",
    ):
        add("XML", text, p())
    add("XML", '<string name="api_key">{}</string>', t())
    add("YAML", "secret_key_base: {}\n", made.hex(64))
    add("YAML", "password: |\n  {}\n  second8Line\nport: 1\n", p())
    for text in ("| Password | {} |", "| DB_PASSWORD | `{}` |", "*Password:* {}"):
        add("Markdown", text, p())
    add("env file", "FROM x\nENV DB_PASSWORD {}\n", p())
    for text in (
        'process.env.DB_PASSWORD || "{}"',
        'ENV.fetch("DB_PASSWORD", "{}")',
        'os.environ.setdefault("DB_PASSWORD", "{}")',
        'env("DB_PASSWORD", default="{}")',
        'System.setProperty("db.password", "{}");',
        'props.put("password", "{}");',
        'builder.password("{}")',
        'variable "db_password" {\n  type = string\n  default = "{}"\n}',
    ):
        add("source code", text, p())
    add("command", "aws configure set aws_secret_access_key {}", made.alnum(40))
    add("command", 'ConvertTo-SecureString "{}" -AsPlainText -Force', p())
    for flag in ("--password", "--db-password", "--api-key", "--token", "--client-secret"):
        secret = p if "password" in flag else t
        add("flag", f"tool {flag} {{}} --verbose", secret())
        add("flag", f"tool {flag}={{}}", secret())
        add("flag", f"tool {flag} '{{}}'", secret())
        add("flag", f'["tool", "{flag}", "{{}}"]', secret())
    add("command", "mysql -h db -u root -p{} shop", p())
    add("command", "mysqldump --user=root -p'{}' shop", p())
    add("command", "sshpass -p {} ssh ann@host", p())
    add("command", "docker login -u ann -p {} registry.example.com", p())
    add("command", "redis-cli -h cache -a {} ping", p())
    add("command", "curl -s -u ann:{} https://api.example.com", p())
    add("command", "curl --user 'ann:{}' https://api.example.com", p())
    add("command", "echo 'root:{}' | chpasswd", p())
    add("command", "ldapsearch -x -D cn=admin -w {} -b dc=x", p())
    add("SQL", "CREATE USER 'ann'@'%' IDENTIFIED BY '{}';", p())
    add("SQL", "ALTER ROLE ann WITH LOGIN PASSWORD '{}';", p())
    add("SQL", "SET PASSWORD = '{}'", p())
    add("SQL", "CREATE USER x IDENTIFIED WITH caching_sha2_password BY '{}'", p())
    for scheme in ("postgresql", "mysql+pymysql", "mongodb+srv", "redis", "amqp", "https", "ftp"):
        add("address", f"{scheme}://ann:{{}}@db.example.com/shop", t())
        add("address", f"URL={scheme}://:{{}}@db:1234", made.alnum(12))
    add("address", "git clone https://{}@github.com/x/y.git", made.alnum(40))
    add("address", "GET /v1/x?user=1&api_key={}&page=2", t())
    add("address", "https://example.com/cb#access_token={}&state=1", t())
    add(
        "connection string",
        "Server=db;Database=x;User Id=ann;Password={};Encrypt=yes",
        made.alnum(12),
    )
    add("connection string", "host=db user=ann password={} dbname=x", p())
    add(
        "connection string",
        "Endpoint=sb://x.servicebus.windows.net/;SharedAccessKeyName=r;SharedAccessKey={}",
        made.base64(32),
    )
    add("header", "Authorization: Bearer {}", t())
    add("header", '{"Authorization": "Bearer {}"}'.replace("{}", "{}"), t())
    add("header", "curl -H 'authorization: bearer {}' https://x", t())
    add("header", "X-Api-Key: {}", t())
    add("header", "Authorization: Basic {}", base64.b64encode(f"ann:{p()}".encode()).decode())
    add("header", "X-Auth-Token: {}\r\n", t())
    add("cookie", "Cookie: theme=dark; sessionid={}; lang=en", t())
    add("cookie", "Set-Cookie: JSESSIONID={}; Path=/; HttpOnly", made.upper(32))
    add("cookie", "connect.sid=s%3A{}", t())
    add("cookie", "PHPSESSID={}", t())
    add(".netrc", "machine api.example.com login ann password {}", p())
    add(".netrc", "machine api.example.com\n  login ann\n  password {}\n", p())
    add("kubeconfig", "users:\n- name: admin\n  user:\n    token: {}\n", t())
    add("kubeconfig", "    client-key-data: {}\n", made.base64(120))
    add(
        "docker auth",
        '{"auths": {"r.io": {"auth": "{}"}}}'.replace('"{}"', '"{}"'),
        base64.b64encode(f"ann:{p()}".encode()).decode(),
    )
    add(
        ".npmrc", "//registry.npmjs.org/:_auth={}", base64.b64encode(f"ann:{p()}".encode()).decode()
    )
    add("header", "Authorization: token {}", made.hex(40))
    add("header", "Ocp-Apim-Subscription-Key: {}", made.hex(32))
    add("kubeconfig", "    client-key-data: {}\n", made.base64(1_700))
    add("YAML", "data:\n  password: {}\n", made.base64(11))
    add("command", "curl https://x \\\n  -su ann:{}", p())
    add(".npmrc", "//registry.npmjs.org/:_authToken={}", made.hex(8) + "-" + made.hex(27))
    add("other language", "密码: {}", p())
    add("other language", "パスワード：{}", p())
    add("other language", "contraseña: {}", p())
    add("other language", "Passwort: {}", p())
    add("prose", "The password for the staging server is {}, please use it.", p())
    add("prose", "my password is {}", p())
    add("prose", 'and the api_key is "{}".', t())
    add("other language", "密码是 {}", p())
    add("other language", "密码是{}。", p())
    add("other language", "パスワードは{}です", made.alnum(9))
    add("other language", "das Passwort lautet {}", made.alnum(9))
    add("other language", "la contraseña es {}.", made.alnum(9))
    for name in "数据库密码 管理员密码 新密码 root密码 Wi-Fi密码 密碼 口令".split():
        add("other language", f"{name}：{{}}", p())
        add("other language", f"请把{name}改成{{}}。然后重启", p())
    for name in "令牌 访问令牌 私钥 密钥 接口密钥 API密钥 トークン APIキー 토큰".split():
        add("other language", f"{name}：{{}}，端口是5433", t())
        add("other language", f"{name}: {{}}", t())
    add("other language", "访问令牌为{}，请勿外传", t())
    add("other language", "应用密钥是{}然后重启", t())
    add("other language", "データベースのパスワード：{}。", p())
    add("other language", "データベースのパスワードは「{}」です", p())
    add("other language", "데이터베이스 비밀번호: {}", p())
    add("other language", "비밀번호는 {}입니다", p())
    add("other language", "mot de passe : « {} »", p())
    for stop in "。 ，然后重启 ；端口是5433 （测试） 】好的 」 、然后".split():
        add("other punctuation", f"密码：{{}}{stop}", p())
        add("other punctuation", f"DB_PASSWORD={{}}{stop}", p())
        add("other punctuation", f"API_KEY={{}}{stop}", t())
        add("other punctuation", f"the password is {{}}{stop}", p())
    for stop in "—never touch prod with it.|–see below, please.|…and so on.".split("|"):
        add("other punctuation", f"password: {{}}{stop}", p())
        add("other punctuation", f"token: {{}}{stop}", t())
    for around in "“{}” ‘{}’ „{}“ 「{}」 『{}』 «{}» `{}`".split():
        add("other punctuation", f"password: {around}, keep it", p())
        add("other punctuation", f"密码是{around}，请勿外传", p())
    add("command", "echo '{}' | docker login -u ann --password-stdin r.example.com", p())
    add("command", "echo {} | gh auth login --with-token", t())
    add("command", "echo '{}' | sudo -S apt update", p())
    add("prose", "aws secret {}", made.alnum(40))
    add("prose", "our AWS secret is {} for now", made.alnum(40))
    add("plain word", 'SECRET="{}"', "short")
    add("plain word", "DB_PASSWORD={}", "swordfish")
    add("plain word", '{"password": "{}"}', "swordfish")
    add("bare plain word", "password: {}\n", "swordfish")
    add("number", '{"password": {}}', made.of("123456789", 8))
    token = "ghp" + "_" + made.alnum(36)
    found.append(("escaped", "".join(f"\\u{ord(c):04x}" for c in token), token))
    found.append(("escaped", token[:8] + f"\\u{ord(token[8]):04x}" + token[9:], token))
    found.append(("escaped", token[:8] + "\u200b" + token[8:], token))
    found.append(("escaped", "".join(f"\\x{ord(c):02x}" for c in token), token))
    found.append(("escaped", '"p\\u0061ssword": "' + (secret := p()) + '"', secret))
    for kind in (
        "RSA PRIVATE KEY",
        "PRIVATE KEY",
        "EC PRIVATE KEY",
        "OPENSSH PRIVATE KEY",
        "ENCRYPTED PRIVATE KEY",
        "DSA PRIVATE KEY",
        "PGP PRIVATE KEY BLOCK",
    ):
        pem = made.pem(kind)
        found.append(("private key", f"$ cat key\n{pem}\n$ ls", pem.split("\n")[6]))
        found.append(
            (
                "private key, escaped",
                '"key": "' + pem.replace("\n", "\\n") + '\\n"',
                pem.split("\n")[6],
            )
        )
    pem = made.pem()
    found.append(("private key, cut off", "\n".join(pem.split("\n")[:6]), pem.split("\n")[4]))
    found.append(("private key, head lost", "\n".join(pem.split("\n")[6:]), pem.split("\n")[8]))
    found.append(("private key, indented", pem.replace("\n", "\n      "), pem.split("\n")[4]))
    body = "\n".join(made.base64(48) for _ in range(8))
    found.append(
        (
            "PuTTY key",
            f"PuTTY-User-Key-File-2: ssh-rsa\nEncryption: none\nPrivate-Lines: 8\n"
            f"{body}\nPrivate-MAC: {made.hex(40)}\n",
            body.split("\n")[3],
        )
    )
    return found


def no_secrets(made: Made) -> list[tuple[str, str]]:
    """Texts that hold none, though they look or sound like it: what it is, and the text."""
    h, dash = made.hex, "-----"
    uuid = f"{h(8)}-{h(4)}-{h(4)}-{h(4)}-{h(12)}"
    image = base64.b64encode(b"\x89PNG\r\n\x1a\n" + random.Random(3).randbytes(6_000)).decode()
    groups = {
        "hashes": [
            f"commit {h(40)}",
            f"sha256:{h(64)}",
            f"md5sum {h(32)}  a.txt",
            f"index {h(7)}..{h(7)}",
            f'"integrity": "sha512-{made.base64(64)}"',
            f'ETag: "{h(32)}"',
            f'"sha": "{h(40)}"',
            f"FROM python@sha256:{h(64)}",
            f"--hash=sha256:{h(64)}",
            f"aws secret {h(40)}",
            f"digest: {h(64)}",
        ],
        "ids": [
            f"id: {uuid}",
            f"request-id {uuid}",
            f'"session_id": "{uuid}"',
            f'"thread_id": "{uuid}"',
            f"call_{made.alnum(24)}",
            f"toolu_{made.alnum(24)}",
            f"msg_{made.alnum(24)}",
            f"chatcmpl-{made.alnum(29)}",
            f"run-{uuid}",
            f"arn:aws:iam::{made.of('123456789', 12)}:role/x",
            f"AC{h(32)}"[:20],
            f"vpc-{h(17)}",
            f"i-{h(17)}",
            f"price_{made.alnum(24)}",
            f"pk_{made.alnum(6)}",
            f"cus_{made.alnum(14)}",
        ],
        "encoded files": [
            f"data:image/png;base64,{image}",
            f'"data": "{image[:3000]}"',
            f'{{"type": "image", "source": {{"data": "{image[:2000]}"}}}}',
        ],
        "types and signatures": [
            "password: str",
            "password: str | None = None",
            "def login(user: str, password: str) -> Token:",
            "token: Optional[str] = None",
            "secret: SecretStr",
            "api_key: Annotated[str, Field()]",
            "password = models.CharField(max_length=128)",
            "private String password;",
            "public function setPassword(string $password): void",
            "func auth(token string) error",
            "password: string;",
            "accessToken?: string",
            "  password VARCHAR(255) NOT NULL,",
            '{"password": {"type": "string", "minLength": 8}}',
            "String apiKey = null;",
            "password: { type: 'password' }",
            "readonly token: Token",
        ],
        "variables and calls": [
            'password = os.environ["X"]',
            "password=os.getenv('DB_PASSWORD')",
            "password = getpass.getpass()",
            "token = request.headers.get('X-Auth-Token')",
            "api_key=settings.API_KEY",
            "password=password,",
            "self.password = password",
            "secret_key = config['secret_key']",
            "token = tokens[i]",
            "PASSWORD=$(cat /run/secrets/db)",
            "PASSWORD=$DB_PASSWORD",
            'password: "${DB_PASSWORD}"',
            "password: {{ vault_password }}",
            "password: ${{ secrets.DB_PASSWORD }}",
            "mysql -p$PASS",
            'echo "$TOKEN" | docker login -u ann --password-stdin',
            "cat token.txt | gh auth login --with-token",
            'CLIENT_SECRET="client_secret"',
            "SECRET=$(vault read x)",
            "postgres://user:${PASSWORD}@host/db",
            "postgresql://{user}:{password}@{host}",
            "--token $TOKEN",
            'f"Bearer {token}"',
            '"Bearer " + token',
            "Authorization: Bearer $TOKEN",
            "password=%s",
            "token = secrets.token_hex(16)",
            "apiKey: process.env.API_KEY",
            "password := os.Args[1]",
            "hash_password(password)",
            "if password == confirm_password:",
            "token != other.token",
            "token=self._token",
            "password = input('Password: ')",
            'token = "".join(parts)',
        ],
        "placeholders": [
            "<password>",
            "<password>your-password</password>",
            "<token>string</token>",
            "**Password:** required",
            "**API key**: see below",
            "- name: DB_PASSWORD\n  value: changeme",
            '{"name": "page_token", "value": "abc123def456"}',
            '{"name": "username", "value": "annabel42"}',
            "description: |\n  hV7kQ2mZ9xW4pT1r",
            "setPassword(newPassword)",
            'os.getenv("DB_PASSWORD", "changeme")',
            'os.getenv("HOST_NAME", "db-7.internal")',
            "password: <password>",
            "API_KEY=YOUR_API_KEY",
            "api_key = 'your-api-key-here'",
            "PASSWORD=changeme",
            "token: xxxxxxxxxxxxxxxx",
            'password="********"',
            "password: ...",
            "secret: TODO",
            "OPENAI_API_KEY=sk-...",
            "export TOKEN=<your token>",
            "password=[REDACTED]",
            "postgres://user:password@localhost/db",
            "https://user:pass@example.com",
            "--password PASSWORD",
            "Authorization: Bearer <token>",
            "Authorization: Bearer YOUR_ACCESS_TOKEN",
            "password: null",
            'password: ""',
            "api_key: none",
            "password = 'password'",
            "ghp_xxxxxxxxxxxx",
            "AKIA...",
            "[redacted: password]",
            "password=[redacted: password]",
            "token: REPLACE_ME",
        ],
        "talk": [
            "The password is required.",
            "the token is invalid",
            "my password is too long (12 letters)",
            "The api_key is needed, see section 3.2.1",
            "password is: unknown",
            "the secret is out",
            "The password must be at least 8 characters long.",
            "Reset your password: click the link.",
            "Password: incorrect, try again.",
            "I forgot my password; please help.",
            "the secret: work hard",
            "A token is a piece of a word.",
            "Use a bearer token for authentication.",
            "basic authentication is not enough",
            "密码是必填的，至少 8 位",
            "密码是 sha256 加密的",
            "密码是8位数字",
            "パスワードは必須です",
            "密码：请勿外传",
            "密码规则：至少8位",
            "密码：至少8位，含A-Z和0-9",
            "密码错误：请重试",
            "令牌桶：100",
            "密码长度：12",
            "令牌：每秒 100 个",
            "令牌：OAuth2协议",
            "密钥长度为2048",
            "私钥：Ed25519",
            "公开密钥：Zx9kQ77wMP2qLz",
            "密码用AES-256-GCM加密",
            "新密码：请联系admin1@example.com获取",
            "密码改成了更强的",
            "password: required。请重试",
            "パスワード：8文字以上",
            "비밀번호: 8자 이상",
            "Password: “required”",
            "das Passwort ist falsch",
            "das Passwort lautet anders",
            "the password is base64 encoded",
            "the aws secret is in the vault",
            "echo 'done' | tee log",
            "The API key is missing.",
            "Invalid token: expired",
            "Pass the key as an argument.",
            "password strength: weak",
            "the tokens: 'a', 'b' and 'c'",
            "Secret Santa is on Friday",
            "key: value",
            "He passed: 12 of 13 tests pass: yes",
            "The token bucket: 10 requests",
            'Error: password authentication failed for user "ann"',
        ],
        "token counts": [
            "max_tokens=4096",
            "max_tokens: 100000",
            '"total_tokens": 123456',
            "tokens: 4,096",
            "prompt_tokens=1024",
            "token_count = 51234567",
            "n_tokens: 12345678",
            "input_token_count: 99",
            '"completion_tokens": 98765432',
            "1,000,000 tokens",
            "tokens_per_second: 123.45",
            "token budget=4000",
            "token数：8000",
            "トークン数：8000",
            "토큰 수: 8000",
        ],
        "names": [
            "primary_key=True",
            "foreign_key='user.id'",
            'sort_key = "created_at_2024"',
            "cache_key: user:123:v2",
            "public_key = load('key1.pub')",
            "next_token=abc123def456ghi789",
            'pad_token = "<pad1>"',
            'eos_token: "<|endoftext|>"',
            "password_file: /run/secrets/db1",
            "token_url=https://x.io/oauth2/token",
            "secret_name: db-credentials-2",
            "PASSWORD_HASHERS = ['a1']",
            "tokenizer: gpt2-medium-v2",
            "token_type: bearer",
            "keyboard: qwerty12",
            "monkey = 'a1b2c3d4e5f6g7h8'",
            "turkey: x1y2z3w4v5",
            "compass: n1e2",
            "secretary: Ann1 Lee2",
            'name="password1"',
            'id="password2" type="password"',
            "csrf_token: abc123def456ghi",
            "keys: a1b2c3",
            "hotkey = ctrl+alt+f12",
            "tokens = ['a1', 'b2']",
            "storage_key: SerializedStorageKey",
            "token: TextGenerationStreamOutputToken\n\nclass TextGenerationStreamOutputToken: ...",
            "private_key: X25519PrivateKey",
            '{"pass": "step2", "fail": 0}',
            f"CACHE_KEY={h(32)}",
        ],
        "public keys": [
            f"ssh-rsa AAAAB3NzaC1yc2E{made.base64(90)} ann@host",
            f"ssh-ed25519 AAAAC3NzaC1lZDI1{made.base64(30)}",
            f"{dash}BEGIN PUBLIC KEY{dash}\n{made.base64(48)}\n{dash}END PUBLIC KEY{dash}",
            f"{dash}BEGIN CERTIFICATE{dash}\n{made.base64(48)}\n{dash}END CERTIFICATE{dash}",
            f"if '{'-' * 5}BEGIN RSA PRIVATE KEY{'-' * 5}' in text: raise ValueError",
            f"{'-' * 5}BEGIN PRIVATE KEY{'-' * 5}\n...\n{'-' * 5}END PRIVATE KEY{'-' * 5}",
        ],
        "addresses": [
            "https://example.com:8080/a?b=c",
            "http://localhost:8000",
            "git@github.com:x/y.git",
            "https://ann@example.com/x",
            "redis://cache:6379/0",
            "mailto:ann@example.com",
            "s3://bucket/key.txt",
            "https://example.com/reset-password?step=2",
            "postgresql://localhost/db",
            "docker pull a/b:1.2@sha256",
            "ssh -p 2222 ann@host",
            "docker run -p 8080:80 image",
            "mkdir -p a/b/c",
            "curl -u ann https://x",
            "see http://x.io/a:b@c is odd",
        ],
    }
    return [(group, text) for group, texts in groups.items() for text in texts]
