from plant_cli.scoring.opened_models import fit as fit
from plant_cli.scoring.opened_models import open_model as load

__all__ = ["__version__", "fit", "load"]
__version__: str
