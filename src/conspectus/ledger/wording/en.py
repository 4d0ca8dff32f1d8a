"""English."""

from conspectus.ledger.wording.lists import Wording

WORDING = Wording(
    rule="""
^ only * ... (with|after|on|in|if|when|from|via|during|between|before)
please remember (to|that) / only (the|a|one|two|use) ... may
nobody (may|can|is|should) / no one (may|can|is|should) / (can|may|allowed) ... (until|up to) # / (can|may) go up to / and not a ... more
must / must not / mustn't / shall not / shall / at all times
at most # / at least # / no (later|earlier|sooner) than / no (more|less|fewer|longer) than
not (more|less|later|longer|earlier|before) than / not exceed / don't exceed / never exceed
under no circumstances / on no account / in no case / not allowed / forbidden / prohibited
off-limits / off limits / out of bounds / not permitted / not acceptable / taboo
mandatory / is required / are required / required to / (has|have) to (be|stay|remain|go|pass)
(everything|everyone|every|each|all|any) ... (has|have|needs|need) to / needs to (be|stay) ... before
may not / may only / can only be / cannot be / can't be (changed|moved|exceeded) / can't go over
can not go over / cannot go over / can't (exceed|spend) / cannot (exceed|spend)
should (always|never|only|stay|remain|not) / shouldn't (be|use|touch|go|exceed)
limit (is|to|of|stays|remains|at|for) / limited to / limits (are|is) / capped at / cap (is|of|on|at|to)
(the|our|a|your) cap / maximum / maximum of / max # / max of / minimum of / minimum # / # max / # maximum
# tops / # or less / # or fewer / # at most / # per (day|night|week|month) max
ceiling / deadline / due (by|on) / is due / are due / budget (is|of|stays|for|remains)
stay (under|below|within) / stays (under|below|within) / keep ... (under|below|within) #
within # (hour|hours|day|days|minute|minutes|second|seconds|week|weeks|business|working)
from now on / going forward / henceforth / from here on / until further notice
^ make sure (that|the|every|all|no|nobody|to|it|they|nothing|you never|you always|you do not|you use|you run|you ask|you keep) / ^ be sure to / ^ ensure / I insist / stick to / stick with / as a rule / rule is / the rule
^ do not / ^ don't / ^ dont / ^ no * / ^ avoid / ^ refrain / ^ nothing ... (before|without|after)
^ leave ... alone / hands off / don't ever / do not ever / keep away from
please (don't|do not|avoid|never|always|only|keep|use) / are to stay
without (my|our|written|explicit|prior|their|a) ... (approval|consent|permission|ok|okay|confirmation|go-ahead|review|backup)
without asking / unless I / ask me (before|first) / ask (first|before) / check with me (before|first)
only (with|after|on|in|from|via|use|touch|change|edit|between|during)
whenever you / every time you / each time you / in all (cases|documents|replies|files|commits|messages|texts|reports)
in every / at the latest / not before / is frozen / are frozen / stays frozen
reply in / answer in / answer me in / respond in / write to me in / talk to me in / replies in / answers in
you may (now|also|again) / may now / is fine now / no need to ... (anymore|any more|any longer)
treat ... as / keep ... (secret|confidential|private|untouched|read-only) / is read-only
is called / are called / (name|address|number|contact|code) is / is spelled / is spelt / spelled with
is limited / are limited / is restricted to / restricted to / hard limit / tolerated
may ... at most / # * at most
actually you (can|may) (delete|remove|edit|change|modify|touch|rename|write|overwrite|push|deploy|merge|commit|install|publish|share)
(don't|do|not|never|cannot|can't|won't|mustn't|wouldn't) ... (more|less|longer|later|fewer) than #
""",
    not_rule="""
we always (have|had|love|enjoy|laugh|end|joke|wanted|knew|say|said|forget) / we never (have|had|knew|thought|got|met|saw|heard) / ^ never (saw|thought|heard|knew|seen|been)
^ must be / always (supporting|full|rooting|by|there|here|remember|happy|fun|great|good|nice|on my|a) / never give up / don't (forget|give|let|stop|sweat|rush|sell|feel|think|lose|be afraid|be daunted|be shy|be sad|be hard|be too) / must've / never saw / didn't / I'll use the / can always (count|rely) / keep (going|it up|up) / no (wonder|doubt|matter|thanks|kidding|clue|joke|fun|such)
I must (say|admit|confess|go|run|leave|be) / must have been / (it|that|this|you|he|she|they) must (have|be)
must be (nice|hard|fun|tough|joking|kidding) / must-see / a must / must say / must admit / must confess
never mind / never (seen|been|heard|knew|thought|had|tried|noticed|met|understood|expected|read|realised|realized)
(have|has|had|I've|we've|they've|you've|he's|she's|I'd|it's) never / I never / it never / you never know
never a dull / never ending / never-ending / better late than never / now or never / he never / she never
not always / as always / almost always / nearly always / always (been|wanted|loved|liked|thought|nice|good|great|fun|wondered|a|the case|said|says|told|tells|happy)
(he|she|it|they|people|there's|there is) always / I've always / have always / has always / had always / I always (thought|forget|forgot|liked|loved|wondered)
always appreciated / always welcome / always nice
to make sure / just making sure / to ensure / make sure I (understand|understood|got|get)
no (problem|problems|idea|worries|need|rush|hurry|matter|thanks|thank|way|doubt|wonder|luck|news|it|that|this|I|we|you|the|surprise|big|pressure|but|sorry|one knows|not|he|she|they|longer|more questions|objections|objection|complaints|strong|special|particular|real|reason)
don't (worry|bother|mind|know|think|remember|understand|see|have|need|feel|care|hesitate|get me|you think)
do not (worry|bother|mind|know|think|remember|understand|hesitate|have|need)
no limit / missed the deadline / deadline stress / limitless / sky is the limit / off-limits?
the maximum I / within reach / only kidding / only joking / only just / only (thing|problem|question)
nobody knows / no one knows / nobody (said|told|likes|was|is|came|noticed)
whenever you (like|can|want|have|are ready) / whenever (possible|it suits) / in every way / in every respect
every time (I|we|he|she|they) / each time (I|we) / throughout the (day|week|night|summer|winter)
don't have to / doesn't have to / had to / you don't / treat myself / treated
^ don't want / ^ do not want
(I|we|he|she|you|they|it) must have
""",
    often="""
never / always / at no time
""",
    order="""
must / should / shall / please / have to / has to / need to / needs to / may / are to / is to / ought / ^ never * / ^ always * / we always / we never / you always / you never / rule / rules
""",
    unreal="""
if (I|we|he|she|they|you|there) (had|were|was|could|won) / I wish / we wish / would have / wouldn't / maybe / perhaps / probably / not sure / haven't decided / not decided / not yet decided / undecided / no decision yet / have not decided / has not been decided / yet to be decided / to be decided / as if / might have / could have / used to / my (boss|father|mother|predecessor|grandmother|teacher|wife|husband|colleague) ... (said|says|used)
""",
    mixed="""
mix (them|it|those|these|up) / mix * up / mixed up / mix-up / confuse / confused / not to be confused / look alike / nearly the same / twins / which is which / don't mistake
""",
    reason="""
because / the reason / that's because / it's because / as otherwise
""",
    preference="""
prefer / prefers / preferred / preference / preferably / I'd prefer / rather have / would rather / I'd rather
I'd much rather / we'd rather / ideally / I like (my|short|when|your)
I like ... (better|best|more|most) / I (love|enjoy) ... (best|more|most) / (I|we) (dislike|hate) / not a fan of
(I'm|we're|am|are) (fond|partial) / partial to / fond of / if possible / if at all possible / where possible
over ... any day / works best for me / suits me (best|better) / use ... (instead of|rather than) / suit me (best|better) / I'd like (it|them|my|the|all|every|short)
more comfortable with / nicer (if|when|with) / best for me / please call me / call me
keep (it|them|answers|replies|messages|things|summaries|explanations) (short|brief|concise|simple|formal|informal|plain)
soft spot for / I'm a ... person / we are a ... family / I tend to (like|prefer) / like better
more my thing / I'm happiest (with|when) / I'd love it if / easier for me (if|when|to) / I get along (best|better) with / (is|are|works|work) (better|best) for me / I (find|think) ... (easier|nicer|clearer) / my favourite (is|are|way) / I enjoy ... more / I'd sooner / would sooner / I like (them|it|mine) (short|brief|plain|simple|hot|cold|quiet|early|late|small|big|without|with|in)
""",
    not_preference="""
I'd rather not say / do you prefer / if you prefer / whichever you prefer / as you prefer / you'd prefer
if you'd like / would you like / I'd like to (know|ask|see|hear|thank|understand|talk) / I'd like the idea
I like (it|that|the idea|your style|the sound|the look|the way) ! / like it a lot
whatever you prefer / what you prefer / you may prefer
""",
    decision="""
on second thoughts / on second thought / final answer / it is settled / that settles it / then it's / we end up with / we fall back on
decided / we decide / decision : / the decision / decision (is|was) / (I|we|they|team|has|have) (chose|chosen) / ^ then we / that's that / opted (for|to) / settled (on|for) / settle on
(we'll|we will|I'll|I will|let's|let us) (use|go with|stick with|go for|stay with|switch|drop|keep using|adopt|take|keep the|postpone|book)
going with / go with / agreed (to|on|that|with) / we agreed / it is agreed / picked / the choice fell on / final choice
root cause / the (cause|culprit|reason|problem|bug|issue|fix) (is|was|turned) / caused by
turned out (to be|that) / turns out (to be|that|the) / boils down to / stems from / traced (it|this|the) ... to
culprit / the verdict / signed off on / (we|they|board|boss|team|manager|client|customer) approved / we're (dropping|going|switching|moving|keeping|using|staying|postponing)
""",
    not_decision="""
can't decide / can not decide / haven't decided / not decided / not yet decided / need to decide / have to decide
has to decide / to be decided / help me decide / undecided / before deciding / you decide / decide later / until we decide
comes from ... (family|town|city|background) / never decided / I'll use the (time|chance|opportunity|break) / let's go (home|ahead|there|back|on|through|step|outside|for a) / let's (see|say|talk|hope|start|take a look|take it|take stock)
I'll take (a|it|your|that|another|some) / I'll (keep you|go) / we'll take (a|it|care)
""",
    task="""
still to do / still to be done / left to do / remaining to do / yet to be done / still needs / still need
still have to / still has to / still (open|outstanding|pending|missing) / next step / next steps / next up / action item / action items
is still (open|outstanding|pending|missing|to) / are still (open|outstanding|pending|missing|to) / remains to be / remain to be
open (task|tasks|item|items|point|points|work) / outstanding / ^ remind me to / please remind me / don't forget to / do not forget to
follow up (on|with) / follow-up / later on please / please also / also please / when you're done / when that is done / once that's done
once you are done / after that please / afterwards please / on my list / on the list / on our list / backlog / (has|have) yet to / not yet (done|finished|started|written)
I (need|want|would like) you to / (could|can|would) you (please|also) / we need to / needs to (be|get) ... (by|before|until)
(please|kindly) ... (by|before|until) (Monday|Tuesday|Wednesday|Thursday|Friday|Saturday|Sunday|tomorrow|tonight|noon|the end|end|next|#)
^ please (write|prepare|add|send|book|draft|update|create|check|fix|order|call|renew|review|migrate|translate|compare|collect|put|set|schedule|file|draw|find|look|make|get|cancel|reserve|print|document|test|clean|remove|rename|ask|arrange|confirm|build|pack)
still (must|ought|want|wants) ... to / (I|we|he|she|they|nobody|no one) (haven't|hasn't|have not|has not|has|have) ... yet / (hasn't|haven't|has not|have not) been ... yet / remains to / (get|getting) (round|around) to / (mustn't|must not|can't|cannot|shouldn't|should not) forget to / (must|need to|have to|should) remember to / what's missing (is|are) / is (still) missing / still (haven't|hasn't|waiting) / needs (cleaning|fixing|washing|painting|replacing|ordering|booking|doing|checking|updating|renewing|sorting|mending|writing|testing|repairing|translating|printing|watering|servicing|tidying|rewriting|signing|filling|paying) / on the to-do / left to (buy|write|order|book|call|pay|fix|check|do|sign|print|send) / (has|have) not been (done|sent|paid|ordered|booked|written|signed|checked) / someone (has|needs) to / somebody (has|needs) to / all that's left / the only thing left
""",
    done="""
done / finished / completed / complete / fixed / is ready / are ready / implemented / resolved / merged / shipped / delivered
has been / have been / I've / we've / I have (now)? / is in place / all set / taken care of / sorted / wrapped up / closed / booked
sent / written / created / added / updated / submitted / published / renewed / deployed / migrated / installed / is out / went out
checked off / ticked off / off the list / can be ticked
(I|we|he|she|they) (cut|sent|paid|bought|ordered|fixed|called|booked|wrote|put|washed|cleaned|changed|replaced|moved|renamed|removed|added|signed|printed|hung|planted|repaired|returned|picked|handed|dropped|posted|filed|filled|watered|painted|mended|translated|cancelled|canceled|renewed) / that's (sorted|done|fixed|off|taken) / is (paid|signed|booked|sent|fixed|clean|off|back|ordered|printed) / are (paid|signed|booked|sent|fixed|clean|off|back|ordered|printed) / got (it|them|that|the) * (done|fixed|sent|sorted|booked|paid) / (is|are) now (in|on|at|up|live|there)
""",
    not_done="""
not (done|finished|completed|complete|fixed|ready|resolved|yet|been|merged) / isn't (done|finished|complete|ready|fixed)
once (done|finished|completed|it|that|this|you|everything) / when (done|finished|it|that|this|you) / if (done|it|that) / to be (done|finished|completed|fixed)
half (done|finished) / almost (done|finished|ready) / nearly (done|finished) / will be / has to be / have to be / needs to be / must be / should be
hasn't been / haven't / hasn't / can be (done|fixed) / still to be / get ... done / I'll have / have I / have you / yet to be / before it's / until it's / as soon as
""",
    change="""
from now on / instead / instead of / no longer / not ... anymore / not any more / any more / anymore / rather than / change / changed / changes / changing
raise / raises / raised / raising / lower / lowers / lowered / lowering / increase* / decrease* / reduce / reduced / reduces / extend / extended / extends
move / moves / moved / moving / moves to / push back / pushed back / brought forward / pulled forward / postpone* / reschedul* / shift / shifted / shifts / slips
now / new / update / updated / updates / correct / correction / corrected / corrects / actually / scrap that / scratch that / forget / drop / dropped / replace / replaced / replaces
switch / switched / switches / switching / bump / bumped / bumping / cut ... to / drop ... to / goes up / go up / went up / gone up / goes down / went down / goes to / up to # / down to # / on second thought / on second thoughts / second thoughts / I was wrong / my mistake / stale / misread / got moved / from today / spelt wrong / spelled wrong / forget what / is gone / stricter / more generous / can't be (that|on) / won't work / make it / make that / as of
revise / revised / revising / changed my mind / on second thought / on reflection / I meant / meant / misspoke / mistyped / typo / wrong / not ... but / after all / supersedes / overrides / override
back to / other way round / adjust / adjusted / tighten / tightened / loosen / relax / relaxed / double / doubled / halve / halved / renamed / rename / delayed / delay / turns out / it's ... not / is ... not / no more / grown to / set to / becomes / became / gets / has until / have until / more time / less time / misspelled / misspelt / mistake
""",
    not_change="""
right now / now and then / for now / until now / now that / by now / just now / new to / what's new / nothing new / never move / don't move / don't change / do not change / never change / before you change / without changing
happy new / new year / brand new / any changes / code changes / the changes / make changes / schema changes / every change / each change / all changes / new (file|files|code|module|modules|test|tests|function|functions|table|column|columns|line|lines|dependency|dependencies|feature|features)
""",
    because="""
because / due to / owing to / on account of / given that / thanks to / seeing that / since (it|its|it's|they|they're|the|that|this|these|those|he|she|we|there|our|most|nobody|everybody|both|all)
""",
    cause="""
(it|that|this|which|and|error|problem|fault|noise|delay|leak|failure|smell|issue|bug) (comes|came|stems|stemmed|arises|arose|results|resulted|originates) from / (is|was|are|were) due to / not because of / isn't because / wasn't because / not (the|a) * but the / (is|was) to blame / to blame for / because of (the|a|an) / the reason (is|was) / it was the * that / it's the * that (makes|causes|breaks) / down to the fact / down to a / what (broke|caused|happened|tripped|stopped) ... (is|was) / is at fault / was at fault / responsible for the
""",
    trouble="""
fail* / crash* / broke / broken / breaks / breaking / error / errors / bug / bugs / wrong / wrongly / missing / lost / leak* / stuck / stopped / stops / stop working / hangs / hung / freez* / froze / frozen / slow / slower / slows / slowed / sluggish / duplicat* / doubled / rejected / rejects / refused / refuses / timed out / times out / timeout / corrupt* / overheat* / jams / jammed / drips / dripping / rattle* / tripped / trips / flicker* / blank / smells / warped / mismatch* / out of (memory|space|date|sync|paper|power) / off by / problem / issue / outage / fault* / went off / goes off / cut out / cuts out / ran dry / too (cold|hot|dark|low|high|late|short|long|loud|many|few|much|little) / garbled / went missing / disappear* / vanish* / bounc* / delayed / late / skipped / skips
(won't|doesn't|didn't|isn't|wasn't|don't|can't|couldn't|never|not|no longer|does not|did not|cannot) (start|starting|work|working|load|open|print|printing|run|running|fit|close|heat|heating|turn|match|arrive|appear|show|showing|update|updating|save|connect|compile|build|respond|sync|charge|charging|boot|drain|light|ring|lock|send|sent|count|counted|add|rise|dry|stick|grow|germinate|set|reach|pass|get|go|come|log|receive|delivered|see|find)
delay / delays / late by / too (salty|heavy|tight|loose|wide|narrow|small|big|large|weak|strong|wet|dry|thin|thick|soft|hard|slow|fast|sweet|sour|bright|steep|far|early|crowded)
upside down / backwards / bent / expired / loose / dry / blocked / clogged / unplugged / overloaded / seized / outdated / misspelled / swapped / reversed
ill / sick / thin / weak / faint / tired out / worn / worn out / cracked / torn / absent
""",
    choice="""
(we|we'll|we will|I'll|I will|let's|let us|I'm going to|we're going to|we are going to|I'd) (keep|leave|take|use|stay|stick|go|choose|pick|skip|drop|switch|move|book|buy|order|put|start|hold|run|plant|hire|rent|cancel|postpone|accept|reject|sell|do|make|play|fly|drive|sign|paint|serve|settle|opt|stop|print|ship|publish|pay|store|repair|replace)
(we're|I'm|we are|I am) (keeping|leaving|taking|using|staying|sticking|going|choosing|picking|skipping|dropping|switching|moving|booking|buying|ordering|putting|starting|holding|running|hiring|renting|cancelling|canceling|postponing|opting)
(it'll|it will|that'll|that will) be / it has to be / it's going to be / ^ then it's / I (choose|pick|opt) / we (chose|picked|kept|took|left) / it stays / they stay / stays (where|as|with|in|on) / remains (as|with)
""",
    not_cause="""
(I'm|I am|I was|I've been|I felt|I feel|you're|she's|he's|we're|we were|she was|he was) (so|really|late|tired|sad|happy|glad|sorry|excited|proud|nervous|worried|grateful|thankful|lucky|busy|here|asking|sleepy|hungry|upset|pretty|a) / (I|you|she|he) (love|loved|like|liked|laughed|cried|smiled|came|joined|asked|ask|enjoy|enjoyed|missed|miss) ... because / (I'll|I will|let's|we'll) (have|make|go) (a|to bed|home|some) / no wonder / just because / ^ because of you / the reason (I|we) (ask|am|write|wrote|came|love|started|do) / thanks to you / due to (be|arrive|come)
a (little|bit) (slow|slower|late|cold|warm|loud|long|short|dark)
""",
    duty="""
(I|we|I'll|we'll|you and I) (need|have|must|ought) to / we must / I must / I've got to / we've got to
""",
    not_duty="""
(need|have|must|ought|got|should) to (say|admit|confess|talk|show|support|be|feel|believe|understand|see|laugh|smile|go|run|leave|stick|keep|have|stay|think|know|learn|remember that|wait|stop|start|work on|get out|take|do|make sure|find a|give|rest|sleep|eat|try|agree|focus) / we should (all|be|have|talk|meet|go|definitely|totally|hang|catch|do this|try|get together) / I (must|should) (be|have|say|admit|go|confess) / we must (be|have) / don't (need|have)
""",
    standing="""
always / never / every / each / any / anything / anyone / all / whenever / only / at most / at least / no (more|later|less|longer|fewer|earlier) / limit / maximum / minimum / max / by default / from now on / unless / without / not / don't / no / nobody / nothing / within / exceed / under / below / if / when / rule / once a / twice a / per (day|week|month|year|person|night) / daily / weekly / monthly
""",
    idle="""
of course we / of course I / if it were / if it was up / were it up / if I had my way / I'd never / I'd always / up to me / you can prefix / will fail / you can always / no response / one option is / the issue is / I owe you / we owe / couldn't agree more / cross my fingers / fingers crossed / count on it / you name it / long story / no such thing / as if / typical / it goes without saying / as they say / as the saying / my grandmother / story of my life / guaranteed to / (must|should|has to|needs to) be (the|a|an|some|one of) / (things|they|it|heaters|trains|kids|children|people|cats|dogs|men|women|printers|machines|computers|customers|tourists|players|guests|students|neighbours|neighbors) (always|never) / I (would|could) never / (always|never) (happens|breaks|works|fails|rains|comes|goes|ends|starts|arrives|rings|fits|looks|feels|tastes|gets|knows|know|fail|break|work|happen|remember)
""",
    allow="""
(is|are|would be|it's|that's) (ok|okay|fine|enough|allowed|acceptable|alright|all right|permitted|sufficient|plenty) / (can|may|could|are allowed to|is allowed to) (go|spend|take|use|stretch|stay|have|last|invite|bring|run|cost|wait|be|buy|book|weigh|charge|order) / (can|may|could) (spend|go|use|invite|bring|take|have|last|stay|run|cost|wait|buy|weigh|charge|order) / will do / allows / allow / lets us / gives us / suffice* / good enough
""",
    told="""
(say|says|said|tells|told|thinks|think|finds|confirmed|confirms|agrees|agreed|reckons|writes|wrote|assured|assures|lets us|gave us|gives us|called|phoned) / according to / apparently / I'm told / I hear / now / even
""",
    grounds="""
^ since / ^ as (it|its|it's|they|they're|the|that|this|these|those|he|she|we|there|our|most|nobody|everybody|both|all|I|you) / so that / otherwise
""",
    not_task="""
still have to (laugh|smile|think|learn|go|wait|live) / don't forget to (take|rest|enjoy|breathe|smile|have|look|relax|be|get enough|prepare emotionally|sleep|eat|drink|say|tell) / we still have to do / how much work / (haven't|hasn't|have not) (seen|heard|met|tried|had|felt|gone|known|decided|thought|played|visited|read|watched|found) ... yet / (haven't|hasn't|have not) been (to|there|here|in|back|able|on) ... yet / needs to be (said|loved)
need to (talk|show|support|be|feel|believe|see|stay|think|learn|remember that|relax|hang|catch|celebrate|have|stick|keep|take|fix things|focus|rest|make more|do more|spend more|find time)
""",
    heading_rule="""
rules / rule / ground rules / house rules / constraints / limits / requirements / conditions / guidelines / conventions / non-negotiables / policy / policies / restrictions / boundaries / the following rules / following rules / dos and don'ts / these apply / what applies / what matters / keep to
""",
    heading_task="""
todo / to-do / to do / todos / tasks / open tasks / next steps / open / open items / open points / remaining / still to do / pending / outstanding / action items / left to do / what's left / what is left / still open
""",
    heading_done="done / finished / completed / already done / done so far / what is done / what's done / finished so far",
    filler="""
because forget second thoughts thought itself every each already doesn isn wasn won couldn anyone everybody apparently earlier decided decide decision prefer like better whole half same other another end also since why much many such own us go
the a an and or for that this these those with from now not but are was were will would should could can may must never always please keep make sure
instead is be been to of in on at by as it its if then than so we you your our us me my i i'm i'd i'll we'll let let's do don't does has have had only just also any all
no yes more most less least new longer actually sorry ok okay well there here they them their he she him her what which who when where how up down out into
about over under after before until again back change changed changes changing raise raised raises lower lowered move moved moves update updated correction
correct corrected replace replaced switch extended extend increase increased reduce reduced drop bump set goes go going gone meant meaning wrong mistake
earlier previous previously former old said told say says want wants wanted need needs like put use get got one thing things today please everything still too very really think
standing applies apply agreed ahead hereby because since good news quick note change reminder regarding concerning rather
ve ll re them it
""",
    alike="""
limit cap maximum max ceiling budget most exceed spend allowance amount spending tops capped limited afford costs cost price
deadline due latest submit submission deliver delivery hand handed
reply answer respond talk speak reply replies answers responses language communicate correspondence conversation
name called spelled spelt call surname
timeout time-out timeouts wait waits
meeting appointment call session kick-off kickoff
retry retries attempts attempt tries
people guests persons participants attendees guest
function functions method methods
release launch go-live rollout
email e-mail mail
reviewer reviewers approvals reviews review approval approvers
folder directory dir
colour color
""",
    months="""
January Jan
February Feb
March Mar
April Apr
May
June Jun
July Jul
August Aug
September Sept Sep
October Oct
November Nov
December Dec
""",
    weekdays="Monday Tuesday Wednesday Thursday Friday Saturday Sunday Mon Tue Wed Thu Fri",
    languages="English German French Spanish Italian Portuguese Dutch Chinese Mandarin Japanese Korean Polish Russian Turkish Arabic Swedish Danish Czech Catalan",
    units="""
seconds second sec secs minutes minute min mins hours hour hrs days day nights night weeks week months month years year
people persons guests participants attendees users customers members seats employees pages lines words characters chars columns rows items files pieces units boxes
copies tickets rooms steps points requests messages tokens times retries attempts euros euro dollars dollar pounds yen cents percent degrees metres meters kilometres kilometers miles litres liters grams kilos kilograms
tonnes pallets bottles chairs tables parcels stops records workers threads connections replicas nodes cores questions slides chapters modules commits bytes square feet inches volts watts amps lux lumens decibels hertz frames calories servings portions laps goals players teams seats litre liter cups spoons eggs slices litres knots acres hectares dozen floors trays jars buckets shifts sessions tracks episodes lines pins clicks working business calendar
""",
)
