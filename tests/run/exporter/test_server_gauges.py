"""The gauges of servers: one, the replicas of a run, and watched ones that come and go."""

from __future__ import annotations

from servetop.core.events import EngineSample, ReplicaSample
from servetop.core.interfaces.replica_change import ReplicaChange, ReplicaState
from servetop.core.interfaces.run_source import EngineFacts
from servetop.core.text.redaction import Redactor
from servetop.core.tick import ClientTick, Tick
from servetop.recordings.write.tick_transaction import TickTransaction
from servetop.run.exporter.exposition import exposition
from servetop.run.exporter.server_gauges import ServerGauges
from tests.run.exporter.recorded import samples_of


def at(index: int) -> Tick:
    return Tick(client=ClientTick(index=index))


def values(gauges: ServerGauges, name: str) -> dict[str, float]:
    page = samples_of(exposition(gauges.families(), openmetrics=True))
    return {dict(labels)["server"]: value for (each, labels), value in page.items() if each == name}


def states(gauges: ServerGauges) -> dict[str, str]:
    page = samples_of(exposition(gauges.families(), openmetrics=True))
    on = [dict(labels) for (name, labels), value in page.items() if name == "servetop_server_state" and value]
    return {each["server"]: each["servetop_server_state"] for each in on}


def change(number: int, name: str, state: ReplicaState) -> ReplicaChange:
    return ReplicaChange(at=0.0, replica=number, name=name, url=f"http://{name}", state=state)


def test_one_server_is_up_while_its_metrics_are_read() -> None:
    gauges = ServerGauges(redactor=Redactor())
    gauges.set_engine(EngineFacts(name="vllm", title="vLLM", url="http://user:pass@gpu7:8000/v1"))
    assert values(gauges, "servetop_server_up") == {"gpu7:8000": 0}
    sample = EngineSample(scrape_start=0.9, scrape_end=1.0, running=3.0, kv_blocks_used=1.0, kv_blocks_total=4.0)
    gauges.add(TickTransaction(tick=at(4), engine_samples=[sample]))
    assert values(gauges, "servetop_server_up") == {"gpu7:8000": 1}
    assert values(gauges, "servetop_server_requests_running") == {"gpu7:8000": 3}
    assert values(gauges, "servetop_server_requests_waiting") == {}, "not exported is not 0"
    assert values(gauges, "servetop_server_kv_cache_usage_ratio") == {"gpu7:8000": 0.25}
    gauges.add(TickTransaction(tick=at(24)))
    assert values(gauges, "servetop_server_up") == {"gpu7:8000": 0}
    assert values(gauges, "servetop_server_requests_running") == {}


def test_each_replica_of_a_run_has_its_address() -> None:
    gauges = ServerGauges(redactor=Redactor())
    gauges.set_engine(
        EngineFacts(name="vllm", title="vLLM", url="http://a:1", replica_urls=("http://a:1", "http://b:2"))
    )
    gauges.add(
        TickTransaction(
            tick=at(3), replica_samples=[ReplicaSample(replica=1, scrape_start=0.9, scrape_end=1.0, waiting=2)]
        )
    )
    assert values(gauges, "servetop_server_up") == {"a:1": 0, "b:2": 1}
    assert values(gauges, "servetop_server_requests_waiting") == {"b:2": 2}


def test_watched_servers_have_their_names_and_states_and_leave() -> None:
    gauges = ServerGauges(redactor=Redactor())
    listed = [change(0, "one", ReplicaState.ATTACHED), change(1, "two", ReplicaState.GONE)]
    gauges.add(TickTransaction(tick=at(0), replica_changes=listed))
    assert values(gauges, "servetop_server_up") == {"one": 0, "two": 0}
    assert states(gauges) == {"one": "attached", "two": "gone"}
    gauges.add(TickTransaction(tick=at(1), replica_changes=[change(1, "two", ReplicaState.REMOVED)]))
    assert values(gauges, "servetop_server_up") == {"one": 0}
    assert states(gauges) == {"one": "attached"}
