"""A loss of stage 2: a margin of one on either side, squared beyond it. Every label of a
document counts.
"""

from plant_cli.api import LossSpec, hookimpl


class SquaredHinge:
    hard_negatives = 0
    random_negatives = 0

    def __call__(self, logits, targets, selected=None):
        counted = self.select(logits, targets) if selected is None else selected
        side = 2 * targets.to(logits.dtype) - 1
        losses = (1 - side * logits).clamp(min=0).square() * counted
        return (losses.sum(1) / counted.sum(1).clamp(min=1)).mean()

    def select(self, logits, targets, generator=None):
        return targets >= 0  # all pairs


@hookimpl
def plant_register_losses():
    summary = "Squared hinge loss over all labels."
    return [
        LossSpec(
            name="squared-hinge",
            summary=summary,
            stage="label",
            build=lambda options: SquaredHinge(),
        )
    ]
