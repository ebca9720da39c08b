"""The numerical deciders: fill the space evenly, model the objective, or first the one and then the other. A model is a
Gaussian process; it proposes the point with the largest expected improvement."""

import asyncio
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize
from scipy.special import erfcx
from scipy.stats import norm, qmc
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import ConstantKernel, Matern, WhiteKernel
from threadpoolctl import threadpool_limits

from baton.application.conduct.deciders import DecideColdStartError, DecideEvidenceRejectedError, Decider
from baton.domain.steering import steering
from baton.domain.steering.steering import OptimizerSetup, SteeringAdvice, SteeringEvidence

Numbers = NDArray[np.float64]

MODEL = "gaussian-process/matern-5-2/expected-improvement"
MOST_POINTS = 300  # the work grows with the cube of the points; beyond, see `subset`
FIT_RESTARTS = 2
DIFFERENCE = 1e-6  # the distance between two points from which a slope is computed
FARTHEST = -1e4  # deviations below the best beyond which the logarithm of the expected improvement is extrapolated


class UnitCube:
    """A space in which every axis has bounds, as a unit cube; raises DecideEvidenceRejectedError for any other space."""

    def __init__(self, space: steering.SteeringSpace) -> None:
        bounds = {axis.name: axis.bounds for axis in space.axes}
        if unbounded := [name for name, ends in bounds.items() if ends is None]:
            raise DecideEvidenceRejectedError(f"This decider knows intervals only, and {', '.join(unbounded)} has none.")
        self._bounds = {name: ends for name, ends in bounds.items() if ends is not None}

    def __len__(self) -> int:
        return len(self._bounds)

    def point(self, fractions: Iterable[float]) -> dict[str, Any]:
        ends = self._bounds.items()
        return {name: steering.between(*bounds, float(part)) for (name, bounds), part in zip(ends, fractions, strict=True)}

    def fractions(self, point: Mapping[str, Any]) -> list[float]:
        return [_fraction(*bounds, point[name]) for name, bounds in self._bounds.items()]


def _fraction(lower: float, upper: float, value: float) -> float:
    scale = max(abs(lower), abs(upper))  # without it, the width of a very wide interval is infinite
    fraction = (value / scale - lower / scale) / (upper / scale - lower / scale)
    return min(max(fraction, 0.0), 1.0)


class SobolDecider(Decider):
    """Follows the unscrambled Sobol' sequence without its origin, where every first pass measures. Never stops."""

    async def advise_next(self, evidence: SteeringEvidence) -> SteeringAdvice:
        cube = UnitCube(evidence.space)
        position = max(1, len(evidence.observations))
        fractions = await asyncio.to_thread(lambda: qmc.Sobol(len(cube), scramble=False).fast_forward(position).random(1)[0])
        why = f"Member {position} of the Sobol' sequence."
        return SteeringAdvice(verdict=steering.SteeringVerdict.MEASURE, next_point=cube.point(fractions), rationale=why)


class GaussianProcessDecider(Decider):
    """Refits its model at every call from the Good points alone. Never stops."""

    def __init__(self, setup: OptimizerSetup) -> None:
        self._setup = setup

    async def advise_next(self, evidence: SteeringEvidence) -> SteeringAdvice:
        cube = UnitCube(evidence.space)
        data = training_data(evidence, cube)
        if len(data.values) < self._setup.min_observations:
            raise DecideColdStartError(
                f"A model needs {self._setup.min_observations} Good points of {evidence.objective.target_measurement_name}, "
                f"and there are {len(data.values)}."
            )
        fractions = await asyncio.to_thread(_most_promising, data.subset(), self._setup)
        why = f"The largest expected improvement, by a model of {len(data.values)} Good points."
        measure, point = steering.SteeringVerdict.MEASURE, cube.point(fractions)
        return SteeringAdvice(verdict=measure, next_point=point, rationale=why, model_ref=MODEL)


class StagedDecider(Decider):
    """Fills the space until there are enough Good points, then follows the model, unless that still needs more points."""

    def __init__(self, setup: steering.StagedDecide) -> None:
        self._threshold = setup.staged_threshold
        self._explorer = SobolDecider()
        self._optimizer = GaussianProcessDecider(setup)

    async def advise_next(self, evidence: SteeringEvidence) -> SteeringAdvice:
        if len(training_data(evidence, UnitCube(evidence.space)).values) >= self._threshold:
            try:
                return await self._optimizer.advise_next(evidence)
            except DecideColdStartError:
                pass
        return await self._explorer.advise_next(evidence)


@dataclass(frozen=True)
class TrainingData:
    """Points of the unit cube in the order they were measured, and values of which the largest is the best."""

    points: Numbers
    values: Numbers

    def subset(self) -> "TrainingData":
        if len(self.values) <= MOST_POINTS:
            return self
        newest, older = np.split(np.arange(len(self.values))[::-1], [MOST_POINTS // 2])
        best = older[np.argsort(self.values[older])[-MOST_POINTS // 2 :]]
        kept = np.sort(np.concatenate([newest, best]))
        return TrainingData(self.points[kept], self.values[kept])


def training_data(evidence: SteeringEvidence, cube: UnitCube) -> TrainingData:
    """Return the Good points, or raise DecideEvidenceRejectedError where the objective is neither minimum nor maximum."""
    objective = evidence.objective
    if objective.kind not in steering.EXTREMA:
        detail = f"This decider looks for a minimum or a maximum and cannot serve {objective.kind.value}."
        raise DecideEvidenceRejectedError(detail)
    sign = -1.0 if objective.kind is steering.SteeringObjectiveKind.MINIMIZE else 1.0
    measured = [
        (cube.fractions(observation.point), sign * value)
        for observation in evidence.observations
        if (value := observation.good(objective.target_measurement_name)) is not None
    ]
    points = np.array([point for point, _ in measured], dtype=float).reshape(len(measured), len(cube))
    return TrainingData(points, np.array([value for _, value in measured], dtype=float))


def _most_promising(data: TrainingData, setup: OptimizerSetup) -> Numbers:
    """Return the best of many samples and of the local maxima above a few, on one core: more make it slower."""
    dimensions, count = data.points.shape[1], setup.raw_samples
    with threadpool_limits(1):
        model = _Model(data, setup.seed)
        samples = qmc.Sobol(dimensions, scramble=True, rng=setup.seed).random_base2((count - 1).bit_length())[:count]
        starts = samples[np.argsort(model.promise(samples))[-setup.num_restarts :]]
        maxima = [_minimize(model.descent, start, [(0.0, 1.0)] * dimensions).x for start in starts]
        candidates = np.concatenate([samples, maxima])
        best: Numbers = candidates[np.argmax(model.promise(candidates))]
    return best


def _minimize(function: Callable[[Numbers], tuple[float, Numbers]], start: Numbers, bounds: object) -> Any:
    return minimize(function, start, method="L-BFGS-B", jac=True, bounds=bounds, options={"maxiter": 50})


class _Model:
    """A model of the objective, in units of its own spread."""

    def __init__(self, data: TrainingData, seed: int) -> None:
        scale = float(np.abs(data.values).max()) or 1.0  # values near the largest double have no finite spread
        values = data.values / scale
        spread = float(values.std()) or 1.0
        self._process = _fit(data.points, (values - values.mean()) / spread, seed)
        self._noise = float(self._process.kernel_.k2.noise_level)
        self._best = float(self._process.predict(data.points).max())

    def promise(self, points: Numbers) -> Numbers:
        """Return the logarithm of the expected improvement over the best mean among the points measured."""
        mean, deviation = self._process.predict(points, return_std=True)
        deviation = np.sqrt(np.maximum(deviation**2 - self._noise, 1e-12))  # the noise of a measurement is no improvement
        promise: Numbers = np.log(deviation) + log_improvement((mean - self._best) / deviation)
        return promise

    def descent(self, point: Numbers) -> tuple[float, Numbers]:
        """Return the negative promise and its slope, for a search of the smallest value."""
        promise = self.promise(np.concatenate([point[None], point + DIFFERENCE * np.eye(len(point))]))
        return -float(promise[0]), -(promise[1:] - promise[0]) / DIFFERENCE


def log_improvement(z: Numbers) -> Numbers:
    """Return log(pdf(z) + z cdf(z)), also where the sum itself underflows."""
    near, far = np.maximum(z, -1.0), np.clip(z, FARTHEST, -1.0)
    direct = np.log(norm.pdf(near) + near * norm.cdf(near))
    scaled = norm.logpdf(np.minimum(z, -1.0)) + np.log1p(far * np.sqrt(np.pi / 2) * erfcx(-far / np.sqrt(2)))
    beyond = 2 * np.log(np.minimum(z, FARTHEST) / FARTHEST)
    return np.asarray(np.where(z < -1, scaled - beyond, direct))


def _fit(points: Numbers, values: Numbers, seed: int) -> GaussianProcessRegressor:
    kernel = ConstantKernel(1.0, (1e-2, 1e2)) * Matern(
        length_scale=np.full(points.shape[1], 0.5), length_scale_bounds=(0.05, 5.0), nu=2.5
    ) + WhiteKernel(1e-2, (1e-6, 1.0))

    process = GaussianProcessRegressor(kernel, optimizer=None).fit(points, values)

    def negative_likelihood(parameters: Numbers) -> tuple[float, Numbers]:
        likelihood, slope = process.log_marginal_likelihood(parameters, eval_gradient=True, clone_kernel=False)
        return -likelihood, -slope

    lowest, highest = kernel.bounds.T
    further = np.random.default_rng(seed).uniform(lowest, highest, size=(FIT_RESTARTS, len(kernel.theta)))
    found = [_minimize(negative_likelihood, start, kernel.bounds) for start in (kernel.theta, *further)]
    likeliest = min(found, key=lambda result: float(result.fun)).x
    return GaussianProcessRegressor(kernel.clone_with_theta(likeliest), optimizer=None).fit(points, values)
