"""A decider that models the objective: a Gaussian process, and the point where most improvement is expected."""

import asyncio
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize
from scipy.special import erfcx
from scipy.stats import norm, qmc
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import ConstantKernel, Matern, WhiteKernel
from threadpoolctl import threadpool_limits

from baton.application.conduct.deciders import DecideColdStartError, DecideEvidenceRejectedError
from baton.domain.operation.steering.decider_choice import EXTREMA, Optimizing
from baton.domain.operation.steering.steering import SteeringAdvice, SteeringEvidence, SteeringObjectiveKind, SteeringVerdict
from baton.infrastructure.decide.intervals import Intervals

Numbers = NDArray[np.float64]

MODEL = "gaussian-process/matern-5-2/expected-improvement"
MOST_POINTS = 300
"""The work grows with the cube of the points; of more than these the best half and the newest half are modelled."""
FIT_RESTARTS = 2
NEAR = 1e-6
"""How far apart two points are between which a slope is taken."""
STEPS = {"maxiter": 50}
FARTHEST = -1e4
"""Deviations below the best, from where on the improvement to be expected is known by how it falls."""


class GaussianProcessDecider:
    """Refits its model at every call from the Good points alone. Never stops."""

    def __init__(self, setup: Optimizing) -> None:
        self._setup = setup

    async def advise_next(self, evidence: SteeringEvidence) -> SteeringAdvice:
        intervals = Intervals(evidence.space)
        data = training_data(evidence, intervals)
        if len(data.values) < self._setup.min_observations:
            raise DecideColdStartError(
                f"A model needs {self._setup.min_observations} Good points of {evidence.objective.target_measurement_name}, "
                f"and there are {len(data.values)}."
            )
        fractions = await asyncio.to_thread(_most_promising, data.thinned(), self._setup)
        return SteeringAdvice(
            verdict=SteeringVerdict.MEASURE,
            next_point=intervals.point([float(part) for part in fractions]),
            rationale=f"The largest expected improvement, by a model of {len(data.values)} Good points.",
            model_ref=MODEL,
        )

    async def close(self) -> None:
        return


@dataclass(frozen=True)
class TrainingData:
    """Points of the unit cube in the order they were measured, and values of which the largest is the best."""

    points: Numbers
    values: Numbers

    def thinned(self) -> "TrainingData":
        """Few enough of them to be modelled."""
        if len(self.values) <= MOST_POINTS:
            return self
        newest, older = np.split(np.arange(len(self.values))[::-1], [MOST_POINTS // 2])
        best = older[np.argsort(self.values[older])[-MOST_POINTS // 2 :]]
        kept = np.sort(np.concatenate([newest, best]))
        return TrainingData(self.points[kept], self.values[kept])


def training_data(evidence: SteeringEvidence, intervals: Intervals) -> TrainingData:
    """The Good points; raises DecideEvidenceRejectedError where nothing is to be made small or large."""
    objective = evidence.objective
    if objective.kind not in EXTREMA:
        raise DecideEvidenceRejectedError(
            f"This decider looks for a minimum or a maximum and cannot serve {objective.kind.value}."
        )
    sign = -1.0 if objective.kind is SteeringObjectiveKind.MINIMIZE else 1.0
    measured = [
        (intervals.fractions(observation.point), sign * value)
        for observation in evidence.observations
        if (value := observation.good(objective.target_measurement_name)) is not None
    ]
    points = np.array([point for point, _ in measured], dtype=float).reshape(len(measured), len(intervals))
    return TrainingData(points, np.array([value for _, value in measured], dtype=float))


def _most_promising(data: TrainingData, setup: Optimizing) -> Numbers:
    """The best of many samples, or what climbing from the best few of them leads to.

    On one core: matrices this small are slower on several, and much slower on several that others use too.
    """
    with threadpool_limits(1):
        return _climbed(data, setup)


def _climbed(data: TrainingData, setup: Optimizing) -> Numbers:
    model = _Model(data, setup.seed)
    dimensions = data.points.shape[1]
    samples = qmc.Sobol(dimensions, scramble=True, rng=setup.seed).random_base2((setup.raw_samples - 1).bit_length())
    samples = samples[: setup.raw_samples]
    starts = samples[np.argsort(model.promise(samples))[-setup.num_restarts :]]
    climbed = [
        minimize(model.descent, start, method="L-BFGS-B", jac=True, bounds=[(0.0, 1.0)] * dimensions, options=STEPS).x
        for start in starts
    ]
    candidates = np.concatenate([samples, climbed])
    best: Numbers = candidates[np.argmax(model.promise(candidates))]
    return best


class _Model:
    """The objective as it is believed to be, in units of its own spread."""

    def __init__(self, data: TrainingData, seed: int) -> None:
        scale = float(np.abs(data.values).max()) or 1.0  # values near the largest double have no finite spread
        values = data.values / scale
        spread = float(values.std()) or 1.0
        self._process = _fitted(data.points, (values - values.mean()) / spread, seed)
        self._noise = float(self._process.kernel_.k2.noise_level)
        self._best = float(self._process.predict(data.points).max())

    def promise(self, points: Numbers) -> Numbers:
        """The logarithm of the improvement expected over the best mean among the points measured."""
        mean, deviation = self._process.predict(points, return_std=True)
        deviation = np.sqrt(np.maximum(deviation**2 - self._noise, 1e-12))  # the noise of a measurement is no promise
        promise: Numbers = np.log(deviation) + log_improvement((mean - self._best) / deviation)
        return promise

    def descent(self, point: Numbers) -> tuple[float, Numbers]:
        """What a search for the smallest value climbs down on: the promise turned round, and its slope."""
        promise = self.promise(np.concatenate([point[None], point + NEAR * np.eye(len(point))]))
        return -float(promise[0]), -(promise[1:] - promise[0]) / NEAR


def log_improvement(z: Numbers) -> Numbers:
    """log(pdf(z) + z cdf(z)), also where the sum itself is nothing to a double."""
    near, far = np.maximum(z, -1.0), np.clip(z, FARTHEST, -1.0)
    direct = np.log(norm.pdf(near) + near * norm.cdf(near))
    scaled = norm.logpdf(np.minimum(z, -1.0)) + np.log1p(far * np.sqrt(np.pi / 2) * erfcx(-far / np.sqrt(2)))
    beyond = 2 * np.log(np.minimum(z, FARTHEST) / FARTHEST)
    return np.asarray(np.where(z < -1, scaled - beyond, direct))


def _fitted(points: Numbers, values: Numbers, seed: int) -> GaussianProcessRegressor:
    """The process under which these values are likeliest, of several found."""
    kernel = ConstantKernel(1.0, (1e-2, 1e2)) * Matern(
        length_scale=np.full(points.shape[1], 0.5), length_scale_bounds=(0.05, 5.0), nu=2.5
    ) + WhiteKernel(1e-2, (1e-6, 1.0))
    process = GaussianProcessRegressor(kernel, optimizer=None).fit(points, values)

    def unlikelihood(parameters: Numbers) -> tuple[float, Numbers]:
        likelihood, slope = process.log_marginal_likelihood(parameters, eval_gradient=True, clone_kernel=False)
        return -likelihood, -slope

    lowest, highest = kernel.bounds.T
    further = np.random.default_rng(seed).uniform(lowest, highest, size=(FIT_RESTARTS, len(kernel.theta)))
    found = [
        minimize(unlikelihood, start, method="L-BFGS-B", jac=True, bounds=kernel.bounds, options=STEPS)
        for start in (kernel.theta, *further)
    ]
    likeliest = min(found, key=lambda result: float(result.fun)).x
    return GaussianProcessRegressor(kernel.clone_with_theta(likeliest), optimizer=None).fit(points, values)
