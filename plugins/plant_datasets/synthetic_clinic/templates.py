"""How notes are laid out and what their sentences look like; `{m}` is the place of a mention, `{d}` of a drug, `{n}` of a number."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Section:
    """Part of a note: `kind` names the sentences that may stand in it, `headings` are ways to head it."""

    kind: str
    headings: tuple[str, ...]


COMPLAINT = Section("complaint", ("Chief complaint", "Presenting complaint", "CC"))
HISTORY = Section("history", ("History", "Past medical history", "PMH", "Background"))
FAMILY = Section("family", ("Family history", "FH"))
FINDINGS = Section("findings", ("Findings", "Examination and imaging", "O/E", "Results"))
COURSE = Section("course", ("Hospital course", "Progress", "Course on the ward"))
MEDICATION = Section("medication", ("Medication", "Drugs on discharge", "Rx"))
PLAN = Section("plan", ("Plan", "Recommendations", "Follow-up"))

TEMPLATES = {
    "DISCHARGE SUMMARY": (COMPLAINT, HISTORY, FAMILY, FINDINGS, COURSE, MEDICATION, PLAN),
    "CLINIC LETTER": (HISTORY, FINDINGS, MEDICATION, PLAN),
    "EMERGENCY NOTE": (COMPLAINT, FINDINGS, HISTORY, PLAN),
    "CONSULTATION": (COMPLAINT, HISTORY, FAMILY, FINDINGS, PLAN),
    "TRANSFER NOTE": (HISTORY, COURSE, FINDINGS, MEDICATION),
}

AFFIRMED = {
    "complaint": ("Admitted with {m}.", "Referred for {m}.", "Came in because of {m}.", "{m} was the reason for coming."),
    "history": ("Known {m}.", "The patient has {m}.", "{m} was diagnosed {n} years ago.", "Treated elsewhere for {m}.", "Hx of {m}."),
    "findings": (
        "Imaging confirms {m}.",
        "Findings consistent with {m}.",
        "{m} is seen.",
        "CT shows {m} measuring {n} mm.",
        "Impression: {m}.",
    ),
    "course": ("The stay was complicated by {m}.", "{m} was managed conservatively.", "Developed {m} on day {n}.", "We treated {m}."),
    "plan": ("Continue treatment of {m}.", "Review of {m} in {n} weeks.", "{m}: see the specialist.", "Monitor {m}."),
}
NEGATED = (
    "No evidence of {m}.", "No sign of {m}.", "{m} was ruled out.", "Denies {m}.", "Negative for {m}.", "Without {m}.",
    "There was concern for {m}, which was not confirmed.",
)  # fmt: skip
RELATIVES = (
    "Mother had {m}.", "Father died of {m} at {n}.", "A sister is treated for {m}.", "{m} in the grandfather.", "Two cousins with {m}.",
)  # fmt: skip
FILLER = {
    "complaint": ("Feeling unwell for {n} days.", "Brought in by ambulance.", "Symptoms began {n} hours before arrival."),
    "history": ("Lives with a partner.", "Stopped smoking {n} years ago.", "No known allergies.", "Walks {n} km daily."),
    "family": ("Parents died of old age.", "{n} siblings, all well.", "Family history otherwise not contributory."),
    "findings": (
        "BP 1{n}/8{n}, pulse {n}, afebrile.", "Haemoglobin {n} g/l.", "Alert and oriented.", "CRP {n} mg/l.", "Abdomen soft.",
        "Breath sounds clear.", "Weight {n} kg.",
    ),
    "course": ("Mobilised on day {n}.", "Diet was advanced as tolerated.", "Pain was well controlled.", "The night was uneventful."),
    "medication": ("{n} mg once daily before breakfast.", "Doses unchanged.", "Stop after {n} days.", "Take with food."),
    "plan": ("Return if symptoms worsen.", "Blood tests in {n} weeks.", "Discussed with the patient, who agrees."),
}  # fmt: skip
PRESCRIBED = ("{d} {n} mg daily.", "{d} {n} mg bd.", "Started on {d}.", "{d} was increased to {n} mg.")
