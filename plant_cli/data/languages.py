"""The language of texts, by their script and their function words."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from functools import cache
from random import Random

import regex

from plant_cli.data.documents import take_texts
from plant_cli.data.words import is_latin, spell

BEGINNING = 2000  # characters of a text that are looked at
TEXTS_RECOGNISED = 500  # texts of a corpus that are looked at
# of a text's letters in a script of one language, from which the text is taken to be in that
# language
SCRIPT_SHARE = 0.3
# Japanese writes most of its meaning in Chinese characters, and always some kana between them
KANA_SHARE = 0.05
WORD_SHARE = 0.08  # of a text's words that must be function words of its language
# function words that must be there: one that is repeated may be a name (DIN is no Romanian word
# here)
DISTINCT = 4


def find_language(text: str) -> str | None:
    """The language of a text as ISO 639-1 code, or None where it is not recognised.

    On messages of a web framework in 44 languages, 100 words at a time, 99% are right, 0.2% are
    given as a close relative (Indonesian as Malay, Serbian as Macedonian), and the rest are None.
    Lists, tables and very short texts are often None.
    """
    beginning = text[:BEGINNING]
    return _find_script(beginning) or recognise_language(spell(beginning))


def recognise_language(words: Sequence[str]) -> str | None:
    """The same by the words of the text's beginning, where no script tells."""
    table = _languages_by_word()
    hits: dict[str, int] = {}
    distinct: dict[str, int] = {}
    for word, times in Counter(filter(table.__contains__, words)).items():
        for language in table[word]:
            hits[language] = hits.get(language, 0) + times
            distinct[language] = distinct.get(language, 0) + 1
    enough = [
        language
        for language in hits
        if distinct[language] >= DISTINCT and hits[language] >= WORD_SHARE * len(words)
    ]
    return max(enough, key=hits.__getitem__, default=None)


def share_languages(texts: Sequence[str]) -> dict[str | None, float]:
    """Share of the texts in each language, the largest first; None: not recognised. Large
    corpora are sampled, always alike.
    """
    rows = (
        range(len(texts))
        if len(texts) <= TEXTS_RECOGNISED
        else Random(0).sample(range(len(texts)), TEXTS_RECOGNISED)
    )
    counts = Counter(find_language(text) for text in take_texts(texts, rows))
    return {language: count / len(rows) for language, count in counts.most_common()}


def name_language(code: str) -> str:
    """The English name of a language; its code where no name is known."""
    return (FUNCTION_WORDS | SCRIPTS).get(code, (code, ""))[0]


def _find_script(text: str) -> str | None:
    """The language whose own script a text is in."""
    if is_latin(text):
        return None
    letters = sum(map(str.isalpha, text))
    counts = {
        language: len(regex.findall(letters, text)) for language, (_, letters) in SCRIPTS.items()
    }  # patterns stay compiled
    if counts["ja"] > KANA_SHARE * letters:
        return "ja"
    language = max(counts, key=lambda code: counts[code])
    return language if counts[language] > SCRIPT_SHARE * letters else None


@cache
def _languages_by_word() -> Mapping[str, Sequence[str]]:
    table: dict[str, list[str]] = {}
    for language, (_, written) in FUNCTION_WORDS.items():
        for word in written.split():
            table.setdefault(word, []).append(language)
    return table


# ISO 639-1 code: (name in English, function words as `plant_cli.data.words.spell` finds them: lower
# case, parted at apostrophes).
FUNCTION_WORDS: dict[str, tuple[str, str]] = {
    "af": (
        "Afrikaans",
        "die en van het is nie wat vir met op hierdie deur om sy aan ek was te dat hulle as maar "
        "na ook jy uit daar kan",
    ),
    "ar": (
        "Arabic",
        "في من على إلى أن هذا هذه التي الذي عن مع ما لا كان أو كل بين لم قد بعد هو هي ذلك ولا "
        "يتم عند إذا كانت يكون وقد",
    ),
    "be": (
        "Belarusian",
        "і у не на што з ў да гэта як па але для ад быў за ці яны так толькі пры ён яна яго іх "
        "быць або таксама каб калі",
    ),
    "bg": (
        "Bulgarian",
        "на и да в за не от се е с по че като са при което който бъде или до това след но има "
        "към само може трябва този",
    ),
    "ca": (
        "Catalan",
        "de la i que el a en per les amb els una del un no és al s es va ha com més són o pel "
        "aquest aquesta dels també han",
    ),
    "cs": (
        "Czech",
        "a se v na je že s z do o pro k ve jsou nebo ale po jako by byl které který při od není "
        "jeho tak byla být bylo za",
    ),
    "cy": (
        "Welsh",
        "y yn a i o ar yr ac wedi mae ei am gan bod eu oedd fel ond sydd nid hyn neu hwn dim "
        "roedd cael chi gyda hefyd rhaid",
    ),
    "da": (
        "Danish",
        "og i af at er en til det på for med som den ikke der et eller har fra var efter kan om "
        "skal blev også kun mere denne du",
    ),
    "de": (
        "German",
        "der die und in den von zu das mit sich des auf für ist im dem nicht ein eine als auch "
        "werden bei aus nach wird oder",
    ),
    "en": (
        "English",
        "the of and to in is that for it as was with be by on not are this or from at which an "
        "have has but were their can",
    ),
    "eo": (
        "Esperanto",
        "la de kaj en estas al ne kiu kun ke el estis pri sed por ĝi li ili oni aŭ kiel ankaŭ "
        "tiu kiuj per post ĉi tio",
    ),
    "es": (
        "Spanish",
        "de la que el en y a los se del las por con un una para no es su al como más fue o lo "
        "sin pero este entre ha son",
    ),
    "et": (
        "Estonian",
        "ja on ei see et oli kui ka mis oma või ning tema aga selle kes siis pole peab olema "
        "pärast välja nii nende üks ta",
    ),
    "eu": (
        "Basque",
        "eta da ez du zen dira ere bat dute izan duen edo baina zuen den beste dago bere egin "
        "dituzte baino hau bai behar",
    ),
    "fa": (
        "Persian",
        "و در به از که این را با است برای آن یک بر تا هم نیز شده یا باید کرد شود شد خود دارد ها "
        "اما می‌شود هر بود نمی",
    ),
    "fi": (
        "Finnish",
        "ja on ei että oli hän se ovat myös kun tai mutta joka sen niin kuin hänen olla jos ole "
        "mukaan jotka sekä voi vain",
    ),
    "fr": (
        "French",
        "de la le et les des en un du une que est pour dans qui par sur au l d a pas plus ne "
        "avec se sont ce cette il aux ou",
    ),
    "ga": (
        "Irish",
        "an na agus a ar i is go le bhí ag do tá sé ní seo nó ach leis sin mar as chun ba faoi é "
        "bhfuil gach féidir den",
    ),
    "gl": (
        "Galician",
        "de a o que e do da en un unha os no para na as por con se non é dos das ao á como máis "
        "ou foi súa ten pero este",
    ),
    "hi": (
        "Hindi",
        "के में की है और से का को पर इस ने एक यह कि भी नहीं हैं लिए था कर या जो गया हो अपने तो साथ वह थे करने",
    ),
    "hr": (
        "Croatian",
        "i u je na se da su za od s a kao iz koji nije o ili što koja će bi do ne ako samo te "
        "bio kako nakon može biti",
    ),
    "hu": (
        "Hungarian",
        "a az és hogy nem is egy meg volt de csak ez vagy mint már van ki azt még lehet kell ha "
        "el szerint után e majd",
    ),
    "id": (
        "Indonesian",
        "yang dan di dengan ini untuk dari dalam tidak pada itu ke oleh akan atau juga dapat "
        "karena bisa anda harus sebagai bahwa",
    ),
    "is": (
        "Icelandic",
        "og í að er á sem til um var með það ekki við fyrir en af hann eru frá hefur verið eða "
        "þess þetta úr ef hún eftir",
    ),
    "it": (
        "Italian",
        "di e il la che in un a per è una del non si della le i con da dei al nel sono alla come "
        "più o delle ha gli lo",
    ),
    "lt": (
        "Lithuanian",
        "ir yra kad iš su į ne tai kaip buvo už nuo bet o jo taip per dėl ar tik arba apie jis "
        "po kai kuris prie gali",
    ),
    "lv": (
        "Latvian",
        "un ir no ar uz ka par kas bet nav tas tika lai kā vai pie bija arī to šis ja tiek pēc "
        "savu viņš var būt līdz",
    ),
    "mk": (
        "Macedonian",
        "на и во од да за се со е не што го ќе како која кој беше ја тоа сите или но овој може "
        "само има ова бидат треба",
    ),
    "ms": (
        "Malay",
        "yang dan di untuk ini dengan dalam pada tidak kepada oleh itu ke akan atau daripada "
        "telah boleh ialah anda perlu mereka",
    ),
    "nl": (
        "Dutch",
        "de van het een en in is dat op te met voor zijn niet aan er om ook als bij door naar "
        "maar of deze wordt uit heeft",
    ),
    "no": (
        "Norwegian",
        "og i av er en til det på for med som ikke de den et eller har fra var etter kan om ble "
        "også å må du denne mer",
    ),
    "pl": (
        "Polish",
        "w i na z się do nie że jest to o jak po a od za dla przez oraz są ale który jego być "
        "był lub przy tym tego które",
    ),
    "pt": (
        "Portuguese",
        "de a o que e do da em um para com não uma os no se na por mais as dos como foi ao das "
        "ele à ou são sua pelo",
    ),
    "ro": (
        "Romanian",
        "de și în a la cu pe din nu care o un este pentru că se mai au fost sau ale prin ca al "
        "fi după lui are dar cel",
    ),
    "ru": (
        "Russian",
        "и в не на что с по это как для от к но из у за же был или он при все так было были до "
        "его только быть также если",
    ),
    "sk": (
        "Slovak",
        "a v na sa je že s z do o pre k ktoré alebo ako nie po ktorý sú by bol od pri ale aj za "
        "tak jeho bola byť bolo už",
    ),
    "sl": (
        "Slovenian",
        "in je v na se za da so ki z s pa ni kot tudi po ali bil bi ne še od le iz do lahko biti "
        "pri kar med če tega",
    ),
    "sq": (
        "Albanian",
        "e të në i për me një nuk dhe që është nga si do më u ka duhet ose por janë kjo ky mund "
        "pas këtë tek ndaj mbi",
    ),
    "sr": (
        "Serbian",
        "и у је на се да су за од са а као из који није о или што која ће би до не ако само те "
        "како после може бити према",
    ),
    "sv": (
        "Swedish",
        "och i att är en som på för det av med den till inte har de ett om var eller från kan "
        "vid så efter också men ska du",
    ),
    "sw": (
        "Swahili",
        "ya na wa kwa ni katika za la cha hii kama au kuwa lakini yake hiyo huo hilo wake pia "
        "baada bila hakuna zaidi hili",
    ),
    "tl": (
        "Tagalog",
        "ang ng sa na mga at ay ni si para ito kung hindi may isang o kay nang mula upang siya "
        "bilang rin niya dahil lamang",
    ),
    "tr": (
        "Turkish",
        "ve bir bu için ile da de olarak çok daha en olan gibi sonra kadar ne ya her ancak veya "
        "değil ise o tarafından göre",
    ),
    "uk": (
        "Ukrainian",
        "і в на не що з у до та як за від це для про але або його є він по при бути був які так "
        "якщо цього також якій",
    ),
    "ur": (
        "Urdu",
        "کے میں کی ہے اور سے کا کو پر اس نے یہ کہ بھی نہیں ہیں ایک لیے تھا کر یا جو گیا ہو تو "
        "ساتھ وہ تھے کرنے",
    ),
    "vi": (
        "Vietnamese",
        "và của là có được cho không một trong các với này người những đã để khi từ đến hoặc "
        "cũng như về phải bạn sẽ tại",
    ),
}

# Scripts that one language writes, or nearly so: ISO 639-1 code: (name of the language, its letters
# as the library `regex` names them).
SCRIPTS: dict[str, tuple[str, str]] = {
    "am": ("Amharic", r"\p{Ethiopic}"),
    "bn": ("Bengali", r"\p{Bengali}"),
    "el": ("Greek", r"\p{Greek}"),
    "gu": ("Gujarati", r"\p{Gujarati}"),
    "he": ("Hebrew", r"\p{Hebrew}"),
    "hy": ("Armenian", r"\p{Armenian}"),
    "ja": ("Japanese", r"[\p{Hiragana}\p{Katakana}]"),
    "ka": ("Georgian", r"\p{Georgian}"),
    "km": ("Khmer", r"\p{Khmer}"),
    "kn": ("Kannada", r"\p{Kannada}"),
    "ko": ("Korean", r"\p{Hangul}"),
    "lo": ("Lao", r"\p{Lao}"),
    "ml": ("Malayalam", r"\p{Malayalam}"),
    "my": ("Burmese", r"\p{Myanmar}"),
    "or": ("Odia", r"\p{Oriya}"),
    "pa": ("Punjabi", r"\p{Gurmukhi}"),
    "si": ("Sinhala", r"\p{Sinhala}"),
    "ta": ("Tamil", r"\p{Tamil}"),
    "te": ("Telugu", r"\p{Telugu}"),
    "th": ("Thai", r"\p{Thai}"),
    "zh": ("Chinese", r"\p{Han}"),
}
