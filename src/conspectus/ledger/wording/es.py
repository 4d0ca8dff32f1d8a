"""Spanish."""

from conspectus.ledger.wording.lists import Wording

WORDING = Wording(
    rule="""
(podemos|puede|pueden|puedes|podrá*|podéis) ... hasta (los|las|el|la) # / (podemos|puede|pueden|puedes|podrá*|podéis) ... hasta # / no (deber*|queremos|podemos|puede|pueden|debe|deben) ... (pasar|más) de # / no ... más de # / pasar de #
debe / deben / debes / debéis / deberá / deberán / tiene que / tienen que / tienes que ... siempre / hay que / como máximo / como mucho / a más tardar / a lo sumo / máximo / máximo de / al menos # / por lo menos # / como mínimo / no más (de|tarde) / no menos de / no (superar|supere|exceder|exceda|pase|pasar|sobrepas*)
en ningún caso / bajo ningún concepto / de ninguna manera / bajo ninguna circunstancia / prohibido / prohibida / prohibidos / queda prohibido / no se permite / no se puede / no se debe / no está permitido / obligatorio / obligatoria / obligatoriamente / imprescindible / es necesario que
límite (es|de|está|será|para) / el límite / limitado a / tope / techo / presupuesto (es|de|máximo|para) / plazo / fecha límite / vence / vencimiento / fecha tope
a partir de (ahora|hoy|este) / de ahora en adelante / en adelante / desde ahora / en lo sucesivo / hasta nuevo aviso / por regla general / la regla
solo (con|se|en|después|tras|por|usa|utiliza|usar|puedes|pueden|si|de|para|entre) / sólo (con|se|en|después|tras|por|usa|utiliza|si) / únicamente / exclusivamente / sin (mi|nuestra|mi aprobación|permiso|autorización|consultar*|preguntar*|avisar*|aprobación|confirmar*|previa)
asegúrate / asegúrese / asegúrense / pregúntame (antes|primero) / consúltame (antes|primero) / pregúnteme / consúlteme / evita / evite / eviten / procura / respeta / respete
^ no (uses|use|toques|toque|hagas|haga|envíes|envíe|borres|borre|cambies|cambie|pongas|ponga|escribas|escriba|subas|suba|modifiques|modifique|incluyas|incluya|reserves|reserve|compartas|comparta|publiques|publique|menciones|mencione|elimines|elimine|llames|llame|aceptes|acepte|gastes|gaste|pagues|contrates|contrate|des|digas|mandes|mande|ejecutes|ejecute|abras|cierres|firmes|firme|dejes|deje|añadas|añada|instales|instale|despliegues|despliegue)
no (quiero que|queremos que|hagáis|toquéis|uséis) / ^ nada de / ^ ningún / ^ ninguna
(responde|responda|contesta|conteste|escribe|escriba|escríbeme|respóndeme|háblame|contéstame|respuestas) ... en (español|inglés|francés|alemán|italiano|chino|japonés|coreano|castellano)
cada vez que / en todos los / en todas las / en cada / se llama / se escribe / por debajo de # / dentro de # (horas|días|minutos|segundos) / menos de # / en un máximo
""",
    not_rule="""
siempre (me|lo|la|los|nos|se|es|igual|hay|está|digo|dice|pasa) / eso siempre / nunca (lo|la|me|nos|se|he|ha|hay|es|fue|está) / debe de / lo de siempre / (soy|eres|es|somos) ... siempre
no siempre / casi siempre / como siempre / siempre (es un placer|me ha|he|ha sido|fue|digo|dice|había|pensé|quise) / nunca (he|ha|había|hemos|han|vi|supe|pensé|había|mejor|se sabe) / más vale tarde que nunca / de siempre / para siempre / desde siempre / debo (decir|admitir|reconocer|confesar) / debe (de|ser que|haber sido|estar cansad*) / debería / tengo que (decir|admitir|reconocer|irme) / hay que (ver|reconocer|decir) / no te preocupes / no se preocupe / no pasa nada / no hay (prisa|problema) / ninguna prisa / ningún problema / ninguna idea / ninguna duda / no lo sé / no sé / no creo / lo máximo que / solo (quería|quiero|era|es|para saber|una pregunta|por curiosidad|por si) / sólo (quería|quiero) / nada de nada / nada de eso importa / no tiene que / no tienes que / no hay que / cada vez (más|menos) / no me / no dudes / no dude
""",
    often="""
siempre / nunca / jamás
""",
    order="""
debe / deben / debes / debéis / tiene que / tienen que / hay que / por favor / usa / usad / use / usen / ^ nunca * / ^ no *es nunca / no * nunca / ^ * siempre / ^ siempre (usa|use|usar|con|en|debe|hay|responde|pide|avisa|consulta|pregunta|revisa|pon|manda|escribe) / regla / norma
""",
    unreal="""
si tuviera / si tuviéramos / si pudiera / si nos tocara / si me tocara / ojalá / quizá / quizás / tal vez / a lo mejor / probablemente / seguramente / supongo / no hemos decidido / no he decidido / sin decidir / aún no ... decid* / todavía no ... decid* / no está decidido / habría que ver / sería
""",
    mixed="""
confund* / no lo confundas / no confundir / no los mezcles / no te líes / mezcl*
""",
    reason="""
porque / es que / la razón / ya que / pues
""",
    preference="""
prefier* / prefer* / preferible* / de preferencia / más bien / me gusta* (más|que|los|las|el|la|mucho|cuando) / nos gusta* / no me gusta* / me gustaría* que / mejor (con|sin|en|si|que sea) / si es posible / a ser posible / idealmente / favorito es / favorita es / me viene mejor / me conviene / odio / detesto / llámame / en lugar de / en vez de / casi que mejor / mejor me / mejor si
(me|nos) gusta* (cort*|brev*|clar*|sencill*|tempran*|pequeñ*|frí*|caliente*|simple*|direct*|sin|con|en|así|más|recibir|tener|verlo|verlos|verlas|que) / me resulta* (más|mejor) / (me|nos) va* mejor / me viene* mejor / me quedo más tranquil* / me es más (fácil|cómodo) / soy más de / me apetece* más / me agrada* más / se me hace más / lo mío es / disfruto más / le veo más / me sale mejor / prefiero
""",
    not_preference="si prefieres / si lo prefieres / si prefiere / como prefieras / como prefiera / me gustaría saber / lo que prefieras",
    decision="""
al final (alquilamos|vamos|hacemos|cogemos|tomamos|compramos|optamos|elegimos|dejamos|usamos|ponemos|nos|lo|la) / decidido : / nos decantamos / nos decidimos por
decidim* / decidido / decidida / decidimos / hemos decidido / he decidido / decisión / hemos elegido / he elegido / elegimos / elijo / optamos / hemos optado / optado por / vamos a (usar|utilizar|quedarnos|seguir|adoptar|contratar|reservar) / nos quedamos con / me quedo con / usaremos / utilizaremos / acordad* / acordamos / quedamos en / al final (vamos|usamos|será|nos) / escogimos / se eligió / se acordó
causa (era|es|fue|raíz|del|de) / la causa / causad* por / provocad* por / el culpable / resultó (ser|que) / el problema (era|es|fue|estaba|venía) / el fallo (era|es|estaba|venía) / el error (era|estaba|venía|se debía)
""",
    not_decision="no hemos decidido / no he decidido / aún no ... decidido / todavía no ... decidido / sin decidir / por decidir / hay que decidir / decidir entre / no me decido / no sé si decid* / ayúdame a decidir / tú decides / usted decide / la razón por la que (pregunto|escribo)",
    task="""
por hacer / queda pendiente / quedan pendientes / pendiente de / pendientes de / falta por / faltan por / falta * por / aún falta / todavía falta / sigue pendiente / siguen pendientes / está pendiente / aún queda / todavía queda / queda por / quedan por / próximo paso / próximos pasos / siguiente paso / tarea / tareas / recuérdame / recuérdeme / no olvides / no olvide / no te olvides / acuérdate de / acuérdese de
(podrías|puedes|podría|puede) (también|además) / además por favor / por favor ... (antes del|antes de|para el|hasta) / también hay que / habrá que / más tarde / luego habrá / aún no (está|se ha) / todavía no (está|se ha) / hay que ... (antes|para)
queda ... por / quedan ... por / me queda / nos queda / nos quedan / me quedan / falta (el|la|los|las|un|una|que|solo|sólo|también) / faltan (los|las|dos|tres|#) / (nos|me) falta* / aún (hay que|tengo|tenemos|queda|faltan|falta|no) / todavía (hay que|tengo|tenemos|queda|faltan|falta) / (aún|todavía) no (he|hemos|ha|han|está|están|se ha|se han|tengo|tenemos|me|nos) / no (he|hemos|se ha|se han|ha|han) ... (aún|todavía) / (está|están|sigue|siguen) (sin|por) * / sin hacer / por (pagar|pedir|comprar|reservar|escribir|firmar|revisar|enviar|arreglar|llamar|terminar|imprimir|traducir|confirmar) / (que no se|no se) (me|nos|te) (olvide|pase) / no (hay que|debo|debemos|podemos|puedo) olvidar* / tengo pendiente / tenemos pendiente
^ falta * / ^ faltan *
^ queda * / ^ quedan *
""",
    done="""
hecho / hecha / hechos / terminad* / acabad* / completad* / finalizad* / listo / lista / listos / listas / resuelt* / arreglad* / corregid* / entregad* / enviad* / reservad* / escrit* / añadid* / actualizad* / cread* / publicad* / cerrad* / concluid* / renovad* / traducid* / comprad* / pedid* / instalad* / desplegad* / ya está / ya están / cancelad* / revisad*
ya (lo|la|los|las|le|les) (he|hemos|ha|han) / (he|hemos|ha|han) (cortado|comprado|pagado|llamado|mandado|cambiado|devuelto|lavado|limpiado|pintado|firmado|impreso|recogido|movido|renombrado|avisado|plantado|regado|subido|llevado|colgado|borrado|pasado|quitado|sustituido|pedido|reservado) / pagado / pagada / firmado / firmada / comprado / impreso / impresa
""",
    not_done="""
no (está|están|se ha|ha sido|hecho) / aún no / todavía no / cuando (esté|termine*|acabe*|haya*) / una vez / casi (listo|terminad*|acabad*) / a medias / debe (estar|ser) / será / serán / por hacer / pendiente / antes de que / en cuanto / de hecho / falta
""",
    change="""
escribí mal / mal escrito / perdona / perdón / no puede ser / he cambiado / vuelto a mirar / estirarnos / hemos subido / pensándolo (bien|mejor) / casi que mejor / lo viejo / al final
a partir de (ahora|hoy) / de ahora en adelante / en adelante / ahora / en lugar de / en vez de / ya no / cambi* / modific* / sub* a / subir / sube / subimos / suban / súbelo / bajar / baja / bajamos / aument* / reduc* / ampli* / retras* / adelant* / aplaz* / pospon* / pospuest* / mueve / mover / movido / movemos / traslad* / se pasa / pasa a / pasa al / pasamos / corrección / correg* / corrig* / rectific* / nuevo / nueva / nuevos / nuevas / en realidad / mejor dicho / quise decir / quería decir / me equivoqu* / me he equivocado / error / errata / no ... sino / reemplaz* / sustitu* / renombr* / prorrog* / elev* / duplic* / deja / olvida / actualiz* / al final / finalmente / y no
""",
    not_change="por ahora / hasta ahora / ahora mismo / ahora bien / no cambies / nunca cambies / no modifiques / de nuevo / por cambiar / mensaje de error / por error",
    because="""
porque / ya que / puesto que / dado que / debido a / a causa de / por culpa de / ^ como (el|la|los|las|no|ya|está|es|hay|nos|se|me|todo|todos|aquí|este|esta|mi|hace|tiene|tenemos|lo|son|están|hoy|mañana) / viene de / venía de / vienen de / venían de / visto que / gracias a / que si no / por falta de
""",
    cause="""
se deb* a / (viene|venía|vienen|venían) de (que|ahí|un|una|el|la|los|las) / (no es|no era|no fue) (por|porque|culpa) / la culpa (es|era|la|fue) / culpa (del|de la|de los) / por eso (no|falla|se|salta|va|pierde|sale|tarda) / es lo que (hace|provoca|causa) / lo que (pasa|pasaba|ocurre|ocurría) es que / la razón (es|era|de) / el motivo (es|era|de) / el origen (es|era|está|estaba) / está* provoc* / resulta que
""",
    trouble="""
falla / fallan / falló / fallaba / fallaban / fallo / fallos / fallando / fallaron / error / errores / rompe / rompen / rompió / roto / rota / rotos / rotas / cae / caen / cayó / caído / cuelga / cuelgan / colgó / colgado / colgada / bloquea / bloqueó / bloqueado / bloqueada / lento / lenta / lentos / lentas / pierde / pierden / perdió / perdido / perdieron / vacío / vacía / vacíos / duplic* / duplicado / gotea / goteaba / averí* / estrope* / atasc* / salta / saltan / saltaba / saltó / retraso / retrasa / se (para|paró|apaga|apagó|corta|cortó|queda|quedó|quema|quemó|moja|seca|secan|congela|calienta) / paró / mal / incorrecto / incorrecta / rechaza* / rechazó / rechazado / dejó de / deja de / dejaron de / problema / problemas / demasiado / demasiada / falta / faltan / faltaba / faltaban / ruido / huele / tarda / tardaba / repite / repetido / repetidos / salió / salen mal / humedad / cojea / desapare* / desafina
no (funciona|funcionaba|funcionó|arranca|arrancaba|arrancó|carga|cargaba|abre|abría|imprime|enciende|encendía|llega|llegaba|llegó|llegan|sale|salía|cierra|entra|va|iba|coincide|coinciden|cuadra|cuadran|cuadraba|calienta|responde|respondía|guarda|sube|subía|aparece|aparecen|aparecía|conecta|encuentra|deja|dejaba|crece|crecen|envía|lee|suena|sonaba|gira|encaja|pasa|recibe|reciben|actualiza)
al revés / torcid* / caducado / caducada / suelta / suelto / flojo / floja / obstruid* / seco
""",
    choice="""
dejamos / dejo / cogemos / mantenemos / mantengo / tomamos / alquilamos / compramos / reservamos / seguimos (con|en) / optamos / elegimos / elijo / escojo / escogemos / pondremos / usaremos / iremos / tiramos (de|con) / vamos (con|a|en|por) / descartamos / descarto / me quedo / nos quedamos / será (el|la|los|las|en|con|por|mejor) / me decanto / voy con / apuesto por / apostamos / cambiamos / contratamos / pintamos / hacemos / llevamos / ponemos / plantamos / conservamos / conservo / renunciamos / aplazamos / cancelamos / se queda (en|como|donde|así) / se quedan (en|como|donde|así) / prescindimos / jugamos / sigo con / haremos / cogeremos / compraremos / dejaremos / alquilaremos / nos vamos
""",
    not_cause="""
(estoy|estaba|estamos|soy|llego|llegué|me (alegro|alegra|río|reí|encanta|gusta|gustó|siento|duele|da)|pregunto|lloré|lloro|vine|escribo) ... (porque|ya|por|que) / por (favor|cierto|ejemplo|eso|supuesto|fin|si|lo menos|lo que|lo visto|la mañana|la tarde|la noche|las mañanas|las tardes|las noches|el camino|el momento) / gracias (a ti|por) / no me extraña / viene de (familia|fuera|lejos|madrid|visita) / no es por (nada|presumir)
""",
    duty="""
hay que / habría que / tengo que / tenemos que / debemos / toca / nos toca / me toca / habrá que / deberíamos / hace falta / haría falta / necesito / necesitamos
""",
    not_duty="""
hay que (ver|reconocer|decir|admitir|tener|vivir|disfrutar|ser|estar|reírse) / tengo que (decir|admitir|reconocer|irme|confesar|colgar|dejarte|dejarlo) / tenemos que (hablar|vernos|irnos|quedar) / necesito (un café|vacaciones|dormir|descansar|ayuda|saber|tu|que me) / necesitamos (saber|vacaciones) / no (hace|hay|tengo|tenemos|necesit*) / toca (el|la|madera|el piano|bien) / no hace falta / sin que haga falta / hace falta (ser|tener)
""",
    standing="""
siempre / nunca / jamás / cada / todos / todas / cualquier / solo / sólo / únicamente / como máximo / como mucho / al menos / más de / a más tardar / por defecto / a partir de / salvo / sin / no / si / cuando / límite / máximo / mínimo / por (noche|día|persona|semana|mes) / diariamente / antes de que / regla / norma
""",
    idle="""
si fuera por mí / por mí no / si por mí fuera / si de mí dependiera / yo nunca / yo siempre / por supuesto que (no|nunca) / claro que (no|nunca|siempre) / ay / no espera / te debo / os debo / le debo / debe ser / debió / debía / deben ser / debe estar / deben estar / debe de / deben de / (se|nos|me|siempre|nunca) (estropean|rompen|rompe|estropea|averían|llueve|toca|pasa|falla) / siempre (que|pasa|llueve|falla|se rompe|se estropea|acaba|llega|llegan|hay|me|nos|toca|ganan|gana|pierde) / (gana|llega|llegan|pasa|llueve|falla|acaba|están|está|son|es|hay|va|van|dice|dicen|tienen|tiene|hace|hacen|pierde|sale|salen|suena) siempre / nunca (se sabe|falla|llega|llegan|pasa|hay|gana|es tarde|me|nos|digas) / como dice el / como siempre / habría / no me digas / no veas / no te lo pierdas / no te (vas|creas|imaginas|puedes) / no te imaginas / no te rías / no llores / no hay quien / ni en sueños / faltaría / no hay mal / más vale / madre mía / hay que ver / qué le vamos / tendría
""",
    allow="""
(está|están) bien / (basta|bastan|valen|sirven)  / (podemos|se puede|se pueden|puede|pueden|podríamos) (gastar|llegar|usar|invitar|durar|esperar|costar|pasar|llevar|estar|subir|pesar|quedarnos|tomar|ir) / es suficiente / son suficientes / es aceptable / son aceptables / se permiten / se permite / permite / permiten / vale con / nos dejan / nos deja / sin problema / autoriza / autorizan / acepta / aceptan / bastan / bastará
""",
    told="""
(dice|dicen|dijo|dijeron|cree|creen|opina|opinan|confirma|confirman|comenta|comentan|escribe|escribió|asegura|autoriza|nos deja|nos dejan|acepta|aceptan|llamó) / según / dicho / me han / incluso / ya
""",
    grounds="""
así que / pues / que así / para que / por el / por la / por los / por las
""",
    not_task="""
(todavía|aún) no (he|hemos|me|se|lo|la|sé|es|hace|son|puedo|creo|ha empezado|hay) ... (visto|oído|creo|cree|comido|desayunado|probado|dormido|ido|frío|calor|tarde|decidido|decido|acostumbr*)
falta de / falta que te / falta nos / faltan * para / falta mucho / falta poco / no faltaba / falta un mes / falta una semana
queda (bien|mal|claro|lejos|cerca|genial|perfecto|café|en|con|muy|mejor) / quedan (bien|mal|genial|muy)
""",
    heading_rule="reglas / regla / normas / condiciones / límites / restricciones / requisitos / instrucciones / pautas / convenciones / directrices",
    heading_task="pendiente / pendientes / por hacer / tareas / tareas pendientes / próximos pasos / queda por hacer / falta / abierto / en curso",
    heading_done="hecho / terminado / completado / listo / ya hecho / hechas",
    filler="""
porque pues según ni decidido decidimos hacemos hacer prefiero preferimos gusta bien mal tan todo lo así nada algo
el la los las lo un una unos unas de del y o u e pero para por con sin en a al que qué se su sus mi mis nuestro nuestra nuestros tu tus me te le les nos os es son era eran será sean sea fue está están ser estar ha han he hemos había hay no sí ya más menos muy también solo sólo como si cuando
nunca siempre debe deben debes tiene tienen ahora nuevo nueva partir adelante favor por máximo mucho mínimo tardar lugar vez cambio cambia cambiar corrección error quise quería decir sube subir subimos baja hasta desde antes después este esta estos esas ese eso esto entonces pues al final aquí hoy todo todos toda todas cada uno yo tú él ella ellos usted ustedes tras pasa queda quedan
""",
    alike="""
límite tope techo presupuesto máximo gasto gastar coste costo importe supere superar
plazo fecha entrega vence vencimiento entregar límite
responde responda contesta conteste escribe escríbeme respuesta respuestas idioma háblame
llama nombre apellido escribe
reunión cita sesión llamada
intentos reintentos intento
personas invitados asistentes participantes comensales
carpeta directorio
correo email e-mail
""",
    months="""
enero ene
febrero feb
marzo
abril abr
mayo
junio jun
julio jul
agosto ago
septiembre setiembre sept
octubre oct
noviembre nov
diciembre dic
""",
    weekdays="lunes martes miércoles jueves viernes sábado domingo",
    languages="español inglés francés alemán italiano chino japonés coreano castellano portugués catalán ruso",
    units="""
segundos segundo minutos minuto horas hora días día noches noche semanas semana meses mes años año personas persona invitados asistentes participantes usuarios clientes plazas páginas página líneas línea palabras caracteres columnas piezas unidades ejemplares archivos ficheros entradas billetes habitaciones pasos puntos peticiones solicitudes mensajes
veces intentos reintentos euros euro dólares pesos grados metros kilómetros litros gramos kilos toneladas palés botellas sillas mesas paquetes empleados cajas voltios vatios amperios lux lúmenes decibelios hercios calorías raciones vueltas goles jugadores equipos vasos tazas cucharadas huevos rebanadas hectáreas plantas pisos centímetros milímetros llamadas platos capítulos fotos diapositivas correos alumnos socios árboles butacas asientos carteles turnos
""",
)
