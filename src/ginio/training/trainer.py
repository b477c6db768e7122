"""The training loop: one optimiser step after another, each a function of its number.

Nothing but weights, averages and optimiser moments is carried from step to step. What a step
draws depends on the seed and the step alone, so a resumed run repeats what an unbroken one does,
bit for bit on a CPU, and several processes draw one batch and take a share of it each.
"""

import json
import math
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import torch
from safetensors.torch import load_file, save_file
from torch import Tensor, nn
from torch.optim.swa_utils import get_ema_multi_avg_fn

from ginio.core.interfaces import Network, SequenceNetwork
from ginio.core.measurement import Covariance
from ginio.data.augment import disturb, mirror, turn
from ginio.data.windows import WindowSet, target_f, targets_s
from ginio.metrics.trajectory import velocity_rmse
from ginio.metrics.uncertainty import calibration_factor
from ginio.training import processes
from ginio.training.captured import CapturedLoss
from ginio.training.config import TrainConfig
from ginio.training.given_mean import hold_mean, take_mean
from ginio.training.losses import (
    LikelihoodLoss,
    Loss,
    Prediction,
    WarmUpLoss,
    predict,
    predict_sequence,
)

STATE_FILE = "state.safetensors"
LOG_FILE = "log.jsonl"
BAD_BATCH_FILE = "bad-batch.safetensors"


class DivergedError(RuntimeError):
    """The loss is not finite; the batch that did it is kept."""


@dataclass(frozen=True, slots=True)
class Progress:
    """One line of the log."""

    step: int
    loss: float
    learning_rate: float
    windows_per_s: float
    val_rmse: float | None = None
    val_nll: float | None = None


@dataclass(frozen=True, slots=True)
class Validation:
    """What the averaged weights are worth on windows that no step has seen."""

    velocity_rmse: float
    nll: float
    covariance_factor: float
    """On Σ, at which that likelihood would be largest."""


class Trainer:
    """Fits a network to windows and leaves a trail in a directory."""

    def __init__(
        self,
        config: TrainConfig,
        train: WindowSet,
        val: WindowSet,
        directory: Path,
        given: nn.Module | None = None,
    ) -> None:
        self.config = config
        self.train_windows = train
        self.val_windows = val
        self.directory = directory
        torch.manual_seed(config.seed)
        self.network = config.network.build().to(config.device)
        if (config.fitted == "covariance") != (given is not None):
            found = "none" if given is None else "one"
            raise ValueError(f"a given mean and fitting {config.fitted!r}: found {found}")
        if given is not None:
            take_mean(self.network, given)
        self.average = config.network.build().to(config.device).requires_grad_(requires_grad=False)
        self.average.load_state_dict(self.network.state_dict())
        self.optimiser = torch.optim.AdamW(
            self.network.parameters(),
            lr=config.learning_rate,
            weight_decay=config.weight_decay,
            fused=config.device.startswith("cuda"),
        )
        if config.is_sequence and not isinstance(self.network, SequenceNetwork):
            found = type(self.network).__name__
            raise ValueError(f"sequences are learnt by recurrent networks; found {found}")
        question = predict_sequence if config.is_sequence else predict
        self.ask = torch.compile(question) if config.is_compiled else question
        self.warm_up = WarmUpLoss(penalty_weight=config.penalty_weight, predict=self._predict)
        self.likelihood = LikelihoodLoss(
            penalty_weight=config.penalty_weight, predict=self._predict
        )
        self.captured: tuple[Loss, CapturedLoss] | None = None
        self.step = 0
        directory.mkdir(parents=True, exist_ok=True)

    def run(self, *, until: int | None = None) -> Iterator[Progress]:
        """Train, yielding a line now and then; stop anywhere, `save` and `resume` to go on."""
        config = self.config
        started, seen = time.perf_counter(), 0
        for step in range(self.step + 1, (until or config.steps) + 1):
            loss = self.take_step(step)
            self.step = step
            seen += config.batch
            last = self.step == config.steps
            validate = self.step % config.validate_every == 0 or last
            if validate or self.step % 50 == 0:
                elapsed = time.perf_counter() - started
                found = self.validate() if validate else None
                progress = Progress(
                    self.step,
                    float(loss),
                    self.learning_rate(self.step),
                    seen / elapsed,
                    None if found is None else found.velocity_rmse,
                    None if found is None else found.nll,
                )
                self._log(progress)
                yield progress

    def take_step(self, step: int) -> Tensor:
        """One optimiser step on the batch that belongs to its number."""
        config = self.config
        for group in self.optimiser.param_groups:
            group["lr"] = self.learning_rate(step)
        self.network.train()
        if config.fitted == "covariance":
            hold_mean(self.network)
        features, target = self.batch(step)
        objective = self.warm_up if step <= config.mse_steps else self.likelihood
        self.optimiser.zero_grad()
        loss = self.loss_and_gradients(objective, features, target)
        if not bool(torch.isfinite(loss)):
            save_file({"features": features, "target": target}, self.directory / BAD_BATCH_FILE)
            raise DivergedError(
                f"loss is {float(loss)} at step {step}; the batch is in "
                f"{self.directory / BAD_BATCH_FILE}"
            )
        processes.average_gradients(self.network)
        nn.utils.clip_grad_norm_(self.network.parameters(), config.gradient_norm)
        self.optimiser.step()
        self._update_average(step)
        return processes.average(loss.clone())

    def loss_and_gradients(self, objective: Loss, features: Tensor, target: Tensor) -> Tensor:
        """The loss of a batch; its gradients are left with the parameters."""
        if self.config.is_captured:
            if self.captured is None or self.captured[0] != objective:
                self.captured = None  # A graph holds all the memory of a step: one at a time.
                self.captured = objective, CapturedLoss(self.network, objective, features, target)
            return self.captured[1](features, target)
        loss = objective(self._network(), features, target)
        loss.backward()
        return loss.detach()

    def batch(self, step: int) -> tuple[Tensor, Tensor]:
        """Features and targets of one step; of several processes, this one's share."""
        config = self.config
        generator = torch.Generator(config.device).manual_seed((config.seed << 32) + step)
        torch.manual_seed((config.seed << 32) + step)
        last = torch.randint(
            len(self.train_windows), (config.batch,), generator=generator, device=config.device
        )
        felt, motion_w = self.train_windows.windows(last), self._motion_w(last)
        if config.augment.is_mirrored:
            felt, motion_w = mirror(felt, motion_w, generator)
        felt = disturb(felt, config.augment, generator, step_s=self.train_windows.step_s)
        window = felt.represent(config.representation)
        if isinstance(self.network, SequenceNetwork) and config.is_sequence:
            target = targets_s(felt, motion_w, self.network.labels)
        else:
            target = target_f(window, motion_w)
        window, target = turn(window, target, config.augment.turn, generator)
        mine = processes.share(config.batch)
        return window.features()[mine].contiguous(), target[mine]

    def learning_rate(self, step: int) -> float:
        """A linear warm-up, then half a cosine down to nothing."""
        config = self.config
        warm = min(1.0, step / config.warm_up_steps)
        return config.learning_rate * warm * 0.5 * (1 + math.cos(math.pi * step / config.steps))

    @torch.no_grad()
    def validate(self, *, stride: int = 10) -> Validation:
        """Velocity (or displacement) RMSE and mean NLL of the averaged weights."""
        self.average.eval()
        residuals, nees, nlls = [], [], []
        every = torch.arange(0, len(self.val_windows), stride, device=self.config.device)
        for last in every.split(512):
            window = self.val_windows.windows(last).represent(self.config.representation)
            target = target_f(window, self.val_windows.motion_w(last))
            mean, axes, log_std = self.average(window.features())
            residuals.append(target - mean)
            nees.append(Covariance(axes, log_std).nees(target - mean))
            nlls.append(Covariance(axes, log_std).nll(target - mean))
        residual = torch.cat(residuals)
        return Validation(
            velocity_rmse=float(velocity_rmse(residual, torch.zeros_like(residual))),
            nll=float(torch.cat(nlls).mean()),
            covariance_factor=float(calibration_factor(torch.cat(nees))),
        )

    def save(self) -> None:
        """Write all that is carried from step to step, whole or not at all."""
        if not processes.is_first():
            return
        partial = self.directory / (STATE_FILE + ".partial")
        save_file(self._state(), partial, metadata={"step": str(self.step)})
        partial.replace(self.directory / STATE_FILE)

    def resume(self) -> bool:
        """Take up where `save` left off; False if there is nothing to take up."""
        path = self.directory / STATE_FILE
        if not path.exists():
            return False
        state = load_file(path, device=self.config.device)
        self.step = int(state.pop("step"))
        self.network.load_state_dict(_part(state, "network."))
        self.average.load_state_dict(_part(state, "average."))
        for name, parameter in self.network.named_parameters():
            moments = _part(state, f"optimiser.{name}:")
            if moments:
                if not self.optimiser.defaults["fused"]:
                    moments["step"] = moments["step"].cpu()
                self.optimiser.state[parameter] = moments
        return True

    def _motion_w(self, last: Tensor) -> Tensor:
        if isinstance(self.network, SequenceNetwork) and self.config.is_sequence:
            return self.train_windows.motions_w(last, self.network.labels)
        return self.train_windows.motion_w(last)

    def _predict(self, network: Network, features: Tensor) -> Prediction:
        with torch.autocast(features.device.type, torch.bfloat16, enabled=self.config.bfloat16):
            return self.ask(network, features)

    def _network(self) -> Network:
        assert isinstance(self.network, Network)
        return self.network

    def _state(self) -> dict[str, Tensor]:
        state = {"step": torch.tensor(self.step)}
        state |= {f"network.{k}": v for k, v in self.network.state_dict().items()}
        state |= {f"average.{k}": v for k, v in self.average.state_dict().items()}
        for name, parameter in self.network.named_parameters():
            moments = self.optimiser.state.get(parameter, {})
            state |= {f"optimiser.{name}:{k}": v for k, v in moments.items()}
        return state

    def _update_average(self, step: int) -> None:
        # The first steps are forgotten faster than the decay says, as an average of few values.
        decay = min(self.config.ema, step / (step + 10))
        both = zip(
            self.average.state_dict().values(), self.network.state_dict().values(), strict=True
        )
        averaged: list[Tensor] = []
        newest: list[Tensor] = []
        for mine, new in both:
            if mine.is_floating_point():
                averaged.append(mine)
                newest.append(new)
            else:
                mine.copy_(new)
        get_ema_multi_avg_fn(decay)(averaged, newest, step)

    def _log(self, progress: Progress) -> None:
        if not processes.is_first():
            return
        line = {name: getattr(progress, name) for name in Progress.__slots__}
        with (self.directory / LOG_FILE).open("a", encoding="utf-8") as log:
            log.write(json.dumps(line) + "\n")


def _part(state: dict[str, Tensor], prefix: str) -> dict[str, Tensor]:
    return {k.removeprefix(prefix): v for k, v in state.items() if k.startswith(prefix)}
