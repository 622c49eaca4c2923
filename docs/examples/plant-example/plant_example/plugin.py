"""What the entry point names: the hooks of all modules of this package."""

from plant_example.analyser import plant_register_analysers as plant_register_analysers
from plant_example.backbone import plant_register_backbones as plant_register_backbones
from plant_example.dataset import plant_register_datasets as plant_register_datasets
from plant_example.decoder import plant_register_decoders as plant_register_decoders
from plant_example.loss import plant_register_losses as plant_register_losses
from plant_example.metric import plant_register_metrics as plant_register_metrics
from plant_example.scorer import plant_register_scorers as plant_register_scorers
from plant_example.shortlist import plant_register_shortlists as plant_register_shortlists
from plant_example.signal import plant_register_signals as plant_register_signals
from plant_example.stage import plant_register_stages as plant_register_stages
