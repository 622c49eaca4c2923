"""A decoder: one attention query and one weight vector for each label."""

from plant_cli.api import DecoderSpec, hookimpl


def build(options, shape):
    import torch  # imported here, so that `plant --help` stays quick
    from torch import nn

    class DotAttention(nn.Module):
        def __init__(self):
            super().__init__()
            start = (
                torch.randn(shape.labels, shape.hidden) if shape.queries is None else shape.queries
            )
            self.queries = nn.Parameter(start / shape.hidden**0.5)
            self.weights = nn.Parameter(torch.zeros(shape.labels, shape.hidden))
            self.bias = nn.Parameter(
                torch.zeros(shape.labels) if shape.prior is None else shape.prior.logit(1e-6)
            )

        def rank(self, reading, labels):
            scores = torch.einsum(
                "lh,bth->blt", self.queries[labels], reading.hidden.float()
            ).float()
            padding = ~reading.mask[:, None]  # one dimension for the labels
            return (
                scores.masked_fill(padding, -1e30).log_softmax(-1).masked_fill(padding, -torch.inf)
            )

        def attention(self, reading, labels):
            return self.rank(reading, labels).exp()

        def forward(self, reading, labels=None):
            labels = (
                torch.arange(len(self.bias), device=self.bias.device) if labels is None else labels
            )
            gathered = self.attention(reading, labels) @ reading.hidden.float()  # [B, l, H]
            return (gathered * self.weights[labels]).sum(-1) + self.bias[labels]

        def parameter_roles(self):
            return {
                "attention": [self.queries],
                "value": [],
                "boost": [],
                "head": [self.weights, self.bias],
            }

    return DotAttention()


@hookimpl
def plant_register_decoders():
    return [
        DecoderSpec(
            name="dot", summary="Label attention by the product of query and state.", build=build
        )
    ]
