"""A training by Lightning whose own PyTorchProfiler records it; Lightning does not know that vestige is in torch's
place.

    python lightning_fit.py FOLDER
"""

import sys
import warnings

import vestige

vestige.install()

import lightning.pytorch as L
import torch
from lightning.pytorch.profilers import PyTorchProfiler
from torch.utils.data import DataLoader

STEPS = 6


class Model(L.LightningModule):
    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(4, 1)

    def training_step(self, batch, _):
        return self.layer(batch).pow(2).mean()

    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), lr=0.1)


def main(folder):
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    profiler = PyTorchProfiler(
        dirpath=folder, filename="fit", record_shapes=True, with_stack=True, group_by_input_shapes=True, row_limit=-1
    )
    trainer = L.Trainer(
        max_epochs=1,
        accelerator="cpu",
        profiler=profiler,
        logger=False,
        enable_checkpointing=False,
        enable_progress_bar=False,
        enable_model_summary=False,
    )
    trainer.fit(Model(), DataLoader(torch.ones(STEPS, 4)))


if __name__ == "__main__":
    main(sys.argv[1])
