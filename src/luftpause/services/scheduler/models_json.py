"""Models and memories as programs see them, in `GET /status` and in `GET /models`."""

from luftpause.core.scheduling.residency.view import DeviceView, ModelView

Json = dict[str, object]


def model_json(model: ModelView) -> Json:
    """Return a model as programs see it; docs/status.schema.json describes it."""
    return {
        "name": model.name,
        "launcher": model.launcher,
        "connected": model.connected,
        "kind": model.kind.value,
        "state": model.phase.value,
        "since_s": round(model.since_s, 3),
        "replica": model.replica,
        "leases": {"in_flight": model.in_flight, "waiting": model.waiting, "expected": model.expected},
        "device": model.device,
        "memory": model.memory,
        "memory_measured": model.is_measured,
        "slots": model.slots,
        "parked": {"runs": model.parked, "bytes": model.parked_size},
        "load_s": round(model.load_s, 3),
        "pinned": model.pinned,
        "persistent": model.persistent,
        "ttl_left_s": _rounded(model.ttl_left_s),
        "eta_s": _rounded(model.eta_s),
        "retry_after_s": _rounded(model.retry_after_s),
        "failures": model.failures,
        "why": model.why,
    }


def device_json(device: DeviceView) -> Json:
    """Return a memory as programs see it."""
    return {"launcher": device.launcher, "device": device.device, "budget": device.budget, "taken": device.taken}


def _rounded(seconds: float | None) -> float | None:
    return None if seconds is None else round(seconds, 3)
