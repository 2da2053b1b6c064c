"""The stages that ``run.run`` names: each takes what the bench file says and gives what the next one needs."""
