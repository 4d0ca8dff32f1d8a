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

FROM_NOW = re.compile(
    r"from now on|going forward|as of|ab jetzt|ab sofort|künftig|von nun an|a partir de ahora|desde ahora|en adelante|désormais|dorénavant"
    r"|à partir de maintenant|以后|今后|从现在|今後|これから|앞으로|이제부터|지금부터|이제",
    re.IGNORECASE,
)
"""Words that say that something holds from now on."""

LOGGED = re.compile(
    r"^\W*(?:[A-Za-z_][\w.]*(?:Error|Exception|Warning)\b|--\s|(?:DEBUG|INFO|WARN|WARNING|ERROR|Traceback)\b)"
)
"""A line that a program has written."""

LOG_LINE = re.compile(
    r"\s*\[?\d{4}[-/]\d\d[-/]\d\d[T ]\d\d:\d\d\S*\s[^A-Za-z]{0,20}"
    r"(?:TRACE|DEBUG|INFO|NOTICE|WARN|WARNING|ERROR|CRITICAL|FATAL)\b"
)
"""One with its time and its level, which nobody says: it states nothing, whatever is in it."""

UNDER_WAY = re.compile(
    r"still running|is running|\b(?:job|task|request) accepted|in (?:the )?queue|in progress|in the background|(?:has been|was|is|been) (?:started|queued|scheduled|launched|dispatched)"
    r"|\bqueued\b|will (?:be sent|report|notify|follow|come|arrive|answer|return|let you know)|not (?:yet )?(?:finished|done|ready)"
    r"|started (?:successfully|the|a)|\bpending\b|accepted the task"
    r"|läuft noch|läuft (?:jetzt )?im hintergrund|im hintergrund|gestartet|wird nachgereicht|noch nicht fertig|in bearbeitung|eingereiht|folgt"
    r"|en segundo plano|en curso|sigue en marcha|se ha iniciado|ha sido iniciad|iniciad[oa]|en cola|todavía (?:no|está)|aún (?:no|está)|en marcha|arrancad[oa]|lanzad[oa]"
    r"|en arrière-plan|en cours|a été lancée?|lancée?|démarrée?|en tâche de fond|en file|pas encore"
    r"|正在(?:后台)?运行|后台|已(?:经)?启动|启动了|进行中|排队|稍后|完成(?:以后|之后|后)"
    r"|実行中|バックグラウンド|開始しました|起動しました|進行中|作業中|完了次第|終わり次第|処理中|受け付けました|まだ"
    r"|\b(?:start(?:ed|ing)|begun|began|kicked off|under ?way|on it|working on|launched|scheduled|submitted to|handed (?:over|to)|assigned|picked up|spawned)\b"
    r"|will (?:get back|have|deliver|be (?:ready|delivered|available|back|done|finished))|as soon as|once (?:it|they|the|everything|that)|results? (?:to )?follow|stay tuned|ongoing"
    r"|angestoßen|begonnen|beauftragt|losgelegt|unterwegs|am laufen|läuft (?:gerade|bereits|seit|schon|derzeit|aktuell|an|noch)|sobald|meldet sich|melde(?:n)? (?:mich|uns)|warteschlange|in arbeit|dauert (?:noch|an)|wird (?:gerade|derzeit|nachgeliefert|später)|übergeben an|steht noch aus"
    r"|en ejecución|en proceso|en progreso|en camino|ha (?:empezado|comenzado|arrancado)|empezó|comenzó|avisar[áé]|en cuanto|cuando (?:termine|acabe|esté)|a la espera|ya está (?:trabajando|corriendo|en)|está (?:trabajando|buscando|revisando|corriendo|ejecutándose)|se enviar[áé]n?|llegar[áé]n?|más tarde"
    r"|a (?:commencé|démarré|débuté)|est (?:parti|lancé|en route|en train)|en train de|en exécution|file d'attente|dès que|quand (?:ce sera|il aura|elle aura)|arriver(?:a|ont)|suivr(?:a|ont)|viendr(?:a|ont)|tiendrai|préviendr|plus tard|toujours en"
    r"|正在|开始(?:了|执行|处理|检查|调查)|已(?:经)?(?:开始|提交|派发|分配|受理|安排|下发|交给)|还在|等待|完成后|跑完|出来(?:后|再|了再)|尚未|还没|随后|过(?:一)?会"
    r"|実行して(?:い|お)|始めました|開始され|着手|進めて(?:い|お)|継続中|待ち(?:です|の状態)|キュー|でき次第|出来次第|わかり次第|しだい|後ほど|あとで|追って|動いて(?:い|お)|調査中|確認中|受付|まもなく|続いて(?:い|お)"
    r"|돌고 있|돌아가고|진행하고|하고 있|맡겼|착수|대기열|접수|나오는 대로|되는 대로|나중에|추후|곧 |준비 중|검토 중|조사 중|확인 중|보내 드리겠|알려 드리겠|실행하고"
    r"|실행 중|백그라운드|시작했|시작되|시작됐|진행 중|대기 중|처리 중|작업 중|완료되면|끝나면|아직",
    re.IGNORECASE,
)
"""What a result says that has only been started."""

NEEDS_NUMBER = re.compile(
    r"deadline|limit|maximum|the maximum|minimum|ceiling|due (?:by|on)|(?:is|are) due|höchstens|maximal|mindestens|spätestens|frühestens"
    r"|obergrenze|untergrenze|deckel|frist|abgabefrist|stichtag|abgabetermin|fällig|como (?:máximo|mucho|mínimo)|máximo|al menos|tope|techo"
    r"|plazo|fecha (?:límite|tope)|vence|vencimiento|a más tardar|a lo sumo|au plus|au plus tard|au maximum|au minimum|plafond\w*"
    r"|délai|date limite|échéance|à rendre|avant le|dernier délai|最多|至多|至少|最少|最迟|最晚|最高\D?|最低\D?|上限|下限|限额|以内|之内|截止|期限|期限?是"
    r"|预算|封顶|截至|以内|以下|以上[でに]|未満|最大|最低|最高|上限|下限|限度|までに|まで。|までです|までとし|期限|締め?切り?|〆切|納期|予算"
    r"|多くても|최대|최소|최고|이내|이하|이상|미만|까지|늦어도|상한|하한|한도|제한|초과|마감|기한|예산|데드라인",
    re.IGNORECASE,
)
"""Words of limits, which set none without a number, a day or a month."""

NUMBERED = re.compile(
    r"\d|[一二三四五六七八九十百千万两半零]|(?:^|\s)(?:한|두|세|네|다섯|여섯|일곱|여덟|아홉|열|하루|이틀|사흘)(?=\s)|[월화수목금토일]요일|[月火水木金土日]曜"
    r"|(?:周|星期|礼拜)[一二三四五六日天末]|月底|月末|周末|年底|明天|后天|今天|今日|明日|오늘|내일|모레|주말|월말"
    r"|\b(?:one|two|three|four|five|six|seven|eight|nine|ten|dozen|half|noon|midnight|tomorrow|today|tonight|ein\w*|zwei|drei|vier|fünf|sechs|sieben"
    r"|acht|neun|zehn|zwölf|halb\w*|morgen|heute|mittags?|mitternacht|una?|uno|dos|tres|cuatro|cinco|seis|siete|ocho|nueve|diez|medi[oa]|mañana|hoy"
    r"|une?|deux|trois|quatre|cinq|six|sept|huit|neuf|dix|demi\w*|demain|midi|minuit|fin (?:du|de)|ende|finales|\w+(?:day|tag|di|woch)"
    r"|lunes|martes|miércoles|jueves|viernes|sábado|domingo|week|month|year)\b",
    re.IGNORECASE,
)
"""A number or a day, in digits or in words."""

HEDGED = re.compile(
    r"(?:吧|呗|嘛|呢|啦|嘞|哈|呀|ですよね|ますよね|んだよね|ものですね|ですねえ?|네요|군요|더라고요|더라구요|잖아요|지요|나 봐요|거든요)[。.!！~〜…]*$"
)
"""Endings by which one remarks on something; no rule ends so, unless it asks for something."""

ASKS = re.compile(r"请|务必|拜托|麻烦|ください|下さい|お願い|주세요|세요|십시오|금지|禁止")
"""Words that ask for something all the same."""

NOTED = re.compile(
    r"\b(?:list|note|noted|notes|written (?:it |that )?down|wrote (?:it|that) down|liste|aufgeschrieben|notiert|vermerkt|eingetragen|apuntad\w*|anotad\w*|lista de|noté\w*|inscrit)\b"
    r"|记|清单|リスト|メモ|控え|覚え|目录|목록|적어|메모|기록",
    re.IGNORECASE,
)
"""Words of somebody who has only noted what is to be done."""

OUTCOME = re.compile(
    r"\b(?:found|identified|it turns out|the answer is|conclusion)\b|gefunden|ergab|ergeben|festgestellt|encontr(?:é|ado|amos|ó)"
    r"|trouvé|constaté|终于|查到|找到|发现了|调查结果|調べ終|終わりました|見つかり|分かりました|わかりました|찾았|마쳤|나왔|확인했",
    re.IGNORECASE,
)
"""Words of what came out of work that was handed over."""

NOT_YET = re.compile(
    r"\bnot (?:yet|finished|done|ready|found)\b|\b(?:still (?:running|working|looking|in)|yet)\b|in the background|noch nicht|läuft noch|noch dabei|im hintergrund"
    r"|todavía|aún|segundo plano|pas encore|toujours|arrière-plan|还没|还在|尚未|正在|后台|まだ|途中|バックグラウンド|実行中|次第|아직|진행 중|백그라운드|대로",
    re.IGNORECASE,
)
"""Words that say so plainly that nothing came out so far."""

EXCLAIMS = re.compile(
    r"^\W*(?:ay|oh|ah|uf|uy|ooh|wow|ouch|ach|oje|puh|tja|hélas|zut|mince|oups|aïe|hey|ha|haha|哎呀?|唉|哇|啊|哈哈?|あ+|えっ?|わあ|うわ|아이고|어머|와|헉)\b.*[!！]\W*$",
    re.IGNORECASE,
)
"""An exclamation, which states nothing."""

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

AT_LEAST = re.compile(
    r"\b(?:at least|minimum|no (?:less|fewer|earlier) than|over|above|after|mindestens|nach"
    r"|frühestens|al menos|como mínimo|después|au moins|au minimum|après)\b"
    r"|至少|以上|之后|少なくとも|以降|최소|이상|이후",
    re.IGNORECASE,
)
AT_MOST = re.compile(
    r"\b(?:at most|maximum|no (?:more|later) than|up to|under|below|before|höchstens|maximal|vor"
    r"|spätestens|como máximo|antes|au plus|au maximum|avant)\b"
    r"|最多|以下|以内|不超过|之前|まで|최대|이하|이내|이전",
    re.IGNORECASE,
)
"""Words that set the lower and the upper end of a range."""
