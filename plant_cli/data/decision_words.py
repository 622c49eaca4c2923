"""What people write to accept and to reject a label, in the languages of the docs: one table
for sheets and corpora.
"""

from __future__ import annotations

import unicodedata
from typing import Final, Literal

Decision = Literal["accept", "reject", "ignore"]
WITHDRAW: Final = "withdraw"
"""What `plant serve` writes where a person takes a decision back; no word for a corpus."""
_WORDS: dict[Decision, str] = {
    "accept": """
        accept accepted a yes y x 1 1.0 true t ok okay correct right keep kept approve approved + ✓
        ✔ ☑ ✅ ja j richtig wahr angenommen annehmen akzeptiert kylla k oikein tosi hyvaksy
        hyvaksytty oui vrai accepte accepter exact si verdadero aceptar aceptado correcto vero
        accetta accettato corretto ratt sant godkand goed juist waar sim verdadeiro aceito certo
    """,
    "reject": """
        reject rejected r no n 0 0.0 false f wrong incorrect remove removed delete drop decline
        declined ✗ ✘ × ❌ ☒ nein falsch abgelehnt ablehnen ei vaarin epatosi hylkaa hylatty
        non faux rejete rejeter refuse falso rechazar rechazado incorrecto rifiuta rifiutato
        sbagliato nej fel falskt nee fout onwaar nao rejeitado errado
    """,
    "ignore": """
        ignore ignored skip skipped undecided unsure maybe unknown ? open pending
        vielleicht unklar offen ehka avoin peut-etre incertain quizas dudoso forse incerto kanske
        oklart misschien talvez
    """,
}
_DECISIONS: dict[str, Decision] = {
    word: decision for decision, words in _WORDS.items() for word in words.split()
}
"""By the word in small letters without accents."""


def read_decision(cell: str) -> Decision | None:
    """What a word says; None for a word that is none of a decision."""
    letters = unicodedata.normalize("NFKD", cell.strip().casefold())
    plain = "".join(letter for letter in letters if not unicodedata.combining(letter))
    return _DECISIONS.get(plain.strip(" .!()[]'\""))
