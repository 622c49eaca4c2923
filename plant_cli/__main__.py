"""`python -m plant_cli` is `plant` (what `accelerate launch -m plant_cli …` starts)."""

from plant_cli.main import main

if __name__ == "__main__":
    main()
