"""The signals of EPICS areaDetector, by which cameras and their file writers are worked."""

CAMERA_STATES = (
    *("Idle", "Acquire", "Readout", "Correct", "Saving", "Aborting", "Error", "Waiting"),
    *("Initializing", "Disconnected", "Aborted"),
)
"""What `DetectorState_RBV` says, by its index."""
DONE = 0
"""The index of `Acquire` and `Capture` when there is nothing more to come."""
UNLIMITED = 0
"""A number of images to record that stands for all there are."""


def signal_of(detector: str, name: str) -> str:
    """A signal of the camera with this prefix."""
    return f"{detector.rstrip(':')}:{name}"


def writer_signal_of(detector: str, name: str) -> str:
    """A signal of the file writer that belongs to a camera: the neighbour `HDF1`, as `bl7:HDF1` of `bl7:cam1`."""
    device, colon, _ = detector.rstrip(":").rpartition(":")
    return f"{device}{colon}HDF1:{name}"
