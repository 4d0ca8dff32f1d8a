"""Marks in the words of all languages, as patterns; and names that are no facts by themselves."""

from __future__ import annotations

import re

WEAK = re.compile(
    r"from now on|going forward|from here on|as of|ab sofort|ab jetzt|ab heute|künftig|von (?:nun|jetzt) an"
    r"|désormais|dorénavant|à partir (?:de maintenant|d'aujourd'hui)|a partir de (?:ahora|hoy)|(?:de ahora )?en adelante"
    r"|从现在起?|从今天起|これからは|지금부터|이제는|"
    r"now|new|gets|goes up|goes down|any ?more|drop|forget|wrong|after all|delay|move|mistake|typo|set to|becomes?|jetzt|nun|neue?[rsn]?"
    r"|doch|anders|statt|maintenant|à présent|nouve(?:au|lle|l)|en fait|passe[rsz]?|monter?|erreur|ahora|nuev[oa]s?|deja|olvida|error"
    r"|现在|以后|今后|新的|其实|换|改|今後|新しい|上げ|下げ|更新|実は|修正|移動|になりました|となりました|이제|앞으로|새|새로운|수정|대신",
    re.IGNORECASE,
)
"""Words of change that may as well mean something else."""

WORK_MARK = re.compile(
    r"^\W*(?:\w{1,3}[,、]\s*)?(?:TODO|TO-DO|To do|Todo|Still to do|Next steps?|Open(?: task| item| point)?s?|Action items?|Task|Left to do|Remaining"
    r"|Noch zu tun|Noch offen|Offen|Nächster? Schritte?|Aufgabe|Zu erledigen|À faire|A faire|Reste à faire|Prochaine étape"
    r"|Pendientes?|Por hacer|Tarea|Próximo paso|Queda pendiente|待办(?:事项)?|下一步|任务|残り|残タスク|次のステップ|やること|タスク|할 일|남은 일|다음 단계"
    r")\s*[:：\-–—]",
    re.IGNORECASE,
)
"""How a sentence begins that names work to be done."""

UNDER_WAY = re.compile(
    r"still running|is running|in progress|in the background|(?:has been|was|is|been) (?:started|queued|scheduled|launched|dispatched)"
    r"|\bqueued\b|will (?:be sent|report|notify|follow|come|arrive|answer|return|let you know)|not (?:yet )?(?:finished|done|ready)"
    r"|started (?:successfully|the|a)|\bpending\b|accepted the task"
    r"|läuft noch|läuft (?:jetzt )?im hintergrund|im hintergrund|gestartet|wird nachgereicht|noch nicht fertig|in bearbeitung|eingereiht|folgt"
    r"|en segundo plano|en curso|sigue en marcha|se ha iniciado|ha sido iniciad|iniciad[oa]|en cola|todavía (?:no|está)|aún (?:no|está)|en marcha|arrancad[oa]|lanzad[oa]"
    r"|en arrière-plan|en cours|a été lancée?|lancée?|démarrée?|en tâche de fond|en file|pas encore"
    r"|正在(?:后台)?运行|后台|已(?:经)?启动|启动了|进行中|排队|稍后|完成(?:以后|之后|后)"
    r"|実行中|バックグラウンド|開始しました|起動しました|進行中|作業中|完了次第|終わり次第|処理中|受け付けました|まだ"
    r"|실행 중|백그라운드|시작했|시작되|시작됐|진행 중|대기 중|처리 중|작업 중|완료되면|끝나면|아직",
    re.IGNORECASE,
)
"""What a result says that has only been started."""

NEVER = re.compile(
    r"\b(?:never|not|no|don't|nicht|nie|niemals|kein\w*|nunca|jamás|jamais|ne)\b|n't|绝不|不要|不得|禁止|ない|不|마세요|지 마|금지",
    re.IGNORECASE,
)
"""Words that forbid or deny."""

_ARTICLE = r"(?:\s+(?:the|a|an|den|dem|der|die|das|el|la|los|las|le|les|des|du|al|del|zum|zur|am|um|at|on))?"
OLD_BEFORE = re.compile(
    rf"(?:\b(?:not|instead of|rather than|from|statt|anstatt|anstelle von|nicht|von|vom|no|en lugar de|en vez de|au lieu (?:de|d')"
    rf"|pas|non|et non|y no|de|old|former|previous|previously|formerly|was|were|been|bisher|bisherigen?|alten?|vorher|früher|antes"
    rf"|antigu[oa]|anterior|ancien(?:ne)?|was wrong|misspelt|replaces|ersetzt){_ARTICLE}|从|由|自|不是|而不是|并非|原来的?|原定|原本|之前的?|代替|取代)"
    r"[\s:,'\"“„«(]*$",
    re.IGNORECASE,
)
"""What stands before a value that holds no longer: "not", "instead of", "from" ... "to"."""

OLD_AFTER = re.compile(
    r"^[\s\"”“»)」』]*(?:(?:の?では?なく|じゃなく|でなく|から(?!は)|より|に代え|を?やめ|가 아니|이 아니|은 아니|는 아니|이 아닌|가 아닌|에서(?!는)|대신|말고"
    r"|→|->|=>|改为|改成|改到|换成|调到|提高到|降到|延到|推迟到|(?:is|are|was|were) (?:wrong|out|gone|obsolete|outdated|history|no longer)"
    r"|(?:ist|war|sind) (?:falsch|überholt|hinfällig|veraltet)|gilt nicht mehr|ya no|n'est plus|no longer))",
    re.IGNORECASE,
)
"""What stands after such a value."""

PROGRAMS = frozenset(
    """git docker docker-compose podman kubectl helm pip pip3 pipx uv npm npx yarn pnpm node deno bun python python3 pytest
    tox make cmake cargo rustc go java javac mvn gradle ruby bundle rails php composer dotnet bash sh zsh sudo ssh scp rsync
    curl wget tar zip unzip grep rg find sed awk cat head tail less ls cp mv rm mkdir chmod chown ln df du ps top kill
    systemctl service journalctl apt apt-get brew yum dnf psql mysql sqlite3 redis-cli mongo mongosh pg_dump pg_restore
    terraform ansible ansible-playbook vagrant aws gcloud az gh glab crontab nginx openssl ffmpeg jq flake8 ruff mypy black
    isort eslint prettier tsc jest vitest playwright alembic flask uvicorn gunicorn celery django-admin poetry conda export
    source screen tmux nohup watch convert pdftotext pandoc latexmk supervisorctl pm2 wrangler vercel fly heroku""".split()
)
"""Programs that command lines start with."""

DIRECTORIES = frozenset(
    """src lib libs test tests doc docs config configs conf bin etc usr home var tmp opt app apps data scripts script tools
    assets build dist pkg cmd internal public static templates views models api server client core utils common packages
    services migrations notebooks examples feature features fix hotfix bugfix release releases origin infra deploy ops
    charts k8s reports logs log media images img uploads output out results benchmarks vendor node_modules .github""".split()
)
"""Names of folders, by which a path of two parts is told from two words with a stroke."""

NAMES = frozenset(
    name.lower()
    for name in """GitHub GitLab JavaScript TypeScript YouTube LinkedIn WhatsApp PowerPoint PayPal FedEx WordPress MacBook
    LangChain LangGraph iPhone iPad macOS iOS eBay OpenAI ChatGPT PostgreSQL MySQL SQLite NoSQL MongoDB DynamoDB RabbitMQ
    GraphQL OAuth JetBrains IntelliJ CloudFlare DevOps FastAPI PyTorch NumPy SciPy GmbH TikTok AirPods FaceTime OneDrive
    OneNote SharePoint DropBox QuickBooks MailChimp HubSpot SalesForce BigQuery ClickHouse RedHat CentOS Node.js Vue.js
    Next.js React.js D3.js Three.js Nuxt.js Express.js McDonald DocuSign BlaBlaCar AutoCAD InDesign PhD LaTeX WiFi JSON YAML
    Wi-Fi UTF-8 UTF-16 SHA-1 SHA-256 SHA256 COVID-19 ISO-8859-1 AES-256 H264 MP3 MP4 utf-8 e.g i.e a.m p.m N/A README.md? U.S
    CO2 4K 5G B2B B2C A4 A3 24/7 KakaoTalk AliPay WeChat OpenStreetMap SBahn ZIP""".split()
)
"""Names of products and standards that look like symbols or ids."""
