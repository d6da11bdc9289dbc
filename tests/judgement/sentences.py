"""The sentences that servetop says about a run, each as a regular expression of its text."""

from __future__ import annotations

CAUSES = (
    "KV-bound", "batch-bound", "rate above capacity", "long prompts", "client-bound", "failing", "engine failed",
    "headroom", "other traffic", "concurrency-limited", "stalled", "no load", "queue growing",
    "overloaded", "engine or network overloaded", "objectives missed", "network-bound",
)  # fmt: skip
"""The names with which a headline, or the verdict line, begins."""
_NUMBER = r"\d+(?:,\d{3})*(?:\.\d+)?"
_INTERVAL = rf"(?: \[{_NUMBER}, {_NUMBER}\])?"
_SECONDS = rf"{_NUMBER} (?:ms|s|min|h)"
_CLOCK = r"\d+(?::\d\d)+"
_OBJECTIVES = rf"(?P<objectives>(?:, |)\w+ ≤ {_SECONDS}(?:(?:, | and )\w+ ≤ {_SECONDS})*)"
_REPLICAS = r"\d+(?:, \d+)*(?: and \d+)?"
_AT_REPLICA = rf"(?: at replicas? {_REPLICAS} of \d+)?"
_AT_RATE = rf"(?: at (?P<rate>{_NUMBER}) req/s)?"

_EXPORT = r"(?:queue|KV usage|batch limit|metrics|preemptions|running count)"
_EXPORTS = rf"{_EXPORT}(?:(?:, | and | and no ){_EXPORT})*"
_SEQUENCES = rf"(?P<sequences>{_NUMBER}) sequences?"
_OWN_REASON = r"[^;]+"
"""The words of an engine or of a server, which servetop only quotes."""

PATTERNS: dict[str, str] = {
    "cause": (
        rf"(?P<cause>{'|'.join(CAUSES)}){_AT_REPLICA}(?P<cold> after a cold start)?"
        rf"(?: (?P<since>from|by) (?P<at>{_CLOCK}))?{_AT_RATE}"
    ),
    "failed at": rf"engine failed at (?P<at>{_CLOCK}): {_OWN_REASON}",
    "quiet": (
        rf"(?:starting|idle|paused|draining|restarting|warming up|settling|unclear|run failed|nothing to judge)"
        rf"(?: (?:from|by) {_CLOCK})?{_AT_RATE}"
    ),
    "preemptions": (
        rf"(?:first preemption(?: seen)?; )?(?P<least>at least )?(?P<count>{_NUMBER}) (?:preemptions?|in all)"
        rf"(?:, up to {_NUMBER}/s)?"
    ),
    "worst TTFT": (
        rf"TTFT p99 (?:as felt )?(?:up to|at most) (?P<seconds>{_SECONDS})(?: as felt)?(?: in any ten seconds)?"
        r"(?P<cold> after it| after the cold start)?"
    ),
    "TTFT rises": rf"TTFT p99 as felt (?:rises from {_SECONDS} to|reaches) (?P<seconds>{_SECONDS})",
    "sustainable about": rf"sustainable ≈ (?P<rate>{_NUMBER}) req/s{_INTERVAL}(?: with {_OBJECTIVES})?",
    "sustainable between": (rf"sustainable (?P<rate>{_NUMBER}) to (?P<most>{_NUMBER}) req/s(?: with {_OBJECTIVES})?"),
    "sustainable at least": rf"sustainable ≥ (?P<rate>{_NUMBER}) req/s(?: with {_OBJECTIVES})?",
    "sustainable below": (
        rf"sustainable < (?P<rate>{_NUMBER}) req/s(?: with {_OBJECTIVES}| \(the batch has not drained\))?"
    ),
    "within objective": rf"only (?P<percent>{_NUMBER})% of the requests had {_OBJECTIVES}(?:, counted from due)?",
    "served": (
        rf"(?P<ok>{_NUMBER}) requests? served(?: at {_NUMBER}(?: to {_NUMBER})? req/s)?"
        rf", (?P<failed>{_NUMBER}) failed"
    ),
    "failed": rf"(?P<failed>{_NUMBER}) of (?P<all>{_NUMBER}) requests? failed",
    "KV peak": rf"KV blocks at most (?P<percent>{_NUMBER})% in use(?: at the scrapes)?(?:, at replica \d+)?",
    "replica": (
        rf"(?:each of \d+ replicas|replica (?P<number>\d+)(?: of \d+(?: \([^)]*\))?)?|replicas {_REPLICAS} of \d+)"
    ),
    "replica queue": rf"at most {_NUMBER} waiting at replicas? {_REPLICAS}, {_NUMBER} elsewhere",
    "replica blocks": rf"KV blocks at most {_NUMBER}% in use at replicas? {_REPLICAS}, {_NUMBER}% elsewhere",
    "replica advice": (
        rf"try (?:more KV memory|a larger max_num_seqs|a lower rate) for replicas? {_REPLICAS}"
        rf", or a load balancer that sends it less"
    ),
    # causes
    "KV fills": rf"the KV cache fills{_AT_RATE}",
    "KV holds": rf"(?:its {_NUMBER} blocks hold|it holds) about {_SEQUENCES}",
    "KV holds too few": (
        rf"it holds about {_SEQUENCES}, of the (?P<expected>{_NUMBER}) that its {_NUMBER} blocks should hold"
    ),
    "batch full": rf"the batch(?: of (?P<size>{_NUMBER}))? is full{_AT_RATE}",
    "too fast": rf"requests arrive faster than the engine serves them{_AT_RATE}",
    "free slots": r"with free KV blocks and batch slots",
    "longer prompts": rf"longer prompts arrive{_AT_RATE}, and requests wait behind their prefill",
    "client late too": r"the client was late too",
    "client behind": rf"the client falls behind its schedule{_AT_RATE}",
    "late share": rf"up to (?P<percent>{_NUMBER})% of requests are late: the figures describe the client",
    "requests fail": rf"requests fail(?:: {_OWN_REASON})?",
    "engine failed": rf"the engine failed(?:: {_OWN_REASON})?",
    "no load": r"nothing was sent: the run has no load",
    "batch changes": (
        rf"(?:the batch size changes|the engine restarts)(?: {_NUMBER} times)?(?: with another batch size)?"
        rf": max_num_seqs {_NUMBER}(?: → {_NUMBER})+"
    ),
    "cache fills": rf"the prefix cache fills from {_NUMBER}% to {_NUMBER}% of the prompt tokens",
    "network": (
        r"(?:the network, a proxy or the server's front end holds requests"
        r"|try a client nearer to the server, or compare with the engine's own latencies)"
    ),
    "slow first token": rf"mean TTFT is (?P<client>{_SECONDS}), the engine's own (?P<engine>{_SECONDS})",
    "held between": rf"of (?P<client>{_NUMBER}) requests? in flight the engine holds (?P<engine>{_NUMBER})",
    "no queue": r"no queue(?: that lasted)?(?P<scrapes> at the scrapes)?",
    "at most waiting": rf"at most (?P<count>{_NUMBER}) waiting(?P<scrapes> at the scrapes)?",
    "no failure": r"no failure",
    "kept up": r"the engine kept up with the whole load",
    "kept up after": r"the engine kept up with the whole load after its cold start",
    "completed": r"the engine completed the load",
    "still grew": r"requests in flight still grew when the load ended: the engine may not keep up",
    "left unserved": r"requests were left unserved when the load ended: the engine may not keep up",
    "few bursts": r"too few bursts came to tell whether the engine keeps up with their rate",
    "queue not known": (
        rf"whether the engine keeps up is unknown: its queue is not known, and (?P<percent>{_NUMBER})% of the requests"
        r" missed the objectives"
    ),
    "short stages": rf"no stage lasted (?P<seconds>{_SECONDS}): too short to tell whether the engine keeps up",
    "cancelled": rf"(?P<count>{_NUMBER}) cancelled unserved",
    "batch limit": (
        rf"the engine runs at most (?P<size>{_NUMBER}) at once{_AT_RATE} while requests wait"
        rf": a batch limit of about {_NUMBER}"
    ),
    "limit unknown": (
        r"(?P<what>the queue grows|requests wait for their first token|more requests arrive than complete)"
        rf"{_AT_RATE}; which limit holds (?:it|them) is unknown"
        rf"(?:: (?:the engine exports no {_EXPORTS}|a replica has no metrics))?"
    ),
    "neither full": r"neither KV blocks nor the batch were full for most of the time",
    "cold start": rf"cold start until (?P<until>{_CLOCK})(?:: TTFT p99 {_SECONDS})?",
    "throttled": (
        rf"the GPU's clocks are throttled for (?P<seconds>{_SECONDS}): the figures are those of a slower GPU"
    ),
    "held": (
        rf"up to (?P<count>{_NUMBER}) requests? queued at the client by its limit"
        rf"(?: of (?P<limit>{_NUMBER}))? in flight"
    ),
    "no more offered": r"the engine was offered no more than that limit",
    # what happened
    "queue grows": rf"the queue grows{_AT_RATE}, to (?P<count>{_NUMBER}) requests? at (?P<at>{_CLOCK})",
    "nothing waits": rf"nothing waits any more(?:, {_SECONDS} after the load fell)?",
    "unstarted": rf"up to (?P<count>{_NUMBER}) (?:requests? )?without a first token(?:, at (?P<at>{_CLOCK}))?",
    "in flight grow": rf"requests in flight grow from {_NUMBER} to (?P<count>{_NUMBER}) at (?P<at>{_CLOCK})",
    "all started": rf"few requests wait for their first token any more(?:, {_SECONDS} after the load fell)?",
    "still wait": r"requests still wait at the end of the run",
    "shorter overload": rf"a shorter overload, for {_SECONDS}: (?P<cause>{'|'.join(CAUSES)})",
    "both loads": r"the latencies are those of both loads together",
    "shorter overloads": rf"{_NUMBER} shorter overloads?, from (?P<times>{_CLOCK}(?:, {_CLOCK})*)(?: and \d+ more)?",
    # advice
    "raise batch": r"(?:try |)(?:a larger max_num_seqs|raise max_num_seqs)",
    "batch fills blocks": r"a larger batch would soon fill the KV blocks",
    "batch advice": rf"(?:try |)max_num_seqs (?:≈ )?(?P<size>{_NUMBER})(?P<memory> or more KV memory)?",
    "more KV": r"(?:try |)(?:more KV memory(?:, or shorter requests)?|shorter requests, or more KV memory)",
    "lower rate": rf"(?:try a lower rate(?: or more replicas)?|lower the rate(?: below {_NUMBER})?)",
    "lower rate or metrics": (
        r"try a lower rate, or --metrics-url: the engine's own metrics tell whether it or the network is the limit"
    ),
    "refused": r"try a lower rate, or a higher limit at the server: it refuses requests above its own",
    "lower load": r"try a lower (?:rate|concurrency), to see whether the load is the cause",
    "raise load": (
        r"(?:try a higher (?:rate|concurrency)|raise the (?:rate|concurrency limit)"
        r"|(?:try|send) more requests at once)"
    ),
    "limit prompts": r"(?:try a limit on the prompt length|limit the prompt length), or serve long prompts apart",
    "faster client": (
        r"(?:try a lower rate, more workers, or a client with more CPU"
        r"|the figures describe the client: lower the (?:rate|concurrency), or give the client more CPU)"
    ),
    "see log": r"look at the (?:engine's log \(5\)|server's log)",
    "check address": r"start the server, or correct --url",
    "raise limit": r"try a higher --max-concurrency, or a lower rate",
    "lower concurrency": (
        r"(?:try a lower concurrency or more replicas|lower the concurrency limit|set a concurrency limit)"
    ),
    "longer run": r"try a longer run at (?:one rate|this load)",
    "unshared server": (
        r"(?:measure a server that no other client uses: its queue and its tokens are in these figures"
        r"|try a server that no other client uses)"
    ),
    "wait": r"(?:hold the load: the KV cache is nearly full|hold the load until as many requests complete as arrive"
    r"|hold this stage until it is steady(?:, or lower the (?:rate|concurrency))?"
    r"|press s to stop the run|press p to resume the load)",
    # the verdict line
    "keeps up now": r"the engine keeps up",
    "waits now": rf"(?P<count>{_NUMBER}) waiting",
    "waits there now": rf"(?P<count>{_NUMBER}) waiting at replicas? (?P<replicas>{_REPLICAS}) of \d+",
    "full there now": r"(?P<what>KV blocks|batch) full there",
    "passed": rf"an overload of {_SECONDS} passed within the objectives",
    "restart": r"try a restart of the engine, to free the KV blocks that no request uses",
    "replica advice now": rf"send less to replicas? {_REPLICAS}, or (?P<then>(?:lower|set) .*)",
    "nothing waits now": r"nothing waits",
    "running now": rf"running (?P<running>{_NUMBER}) of (?P<limit>{_NUMBER})",
    "foreign now": (
        rf"(?:about (?P<count>{_NUMBER})(?: of {_NUMBER})? requests? in the engine are not from this run"
        r"|other traffic: about .* are not from this run)"
    ),
    "throttled now": r"the GPU's clocks are throttled",
    "failing now": rf"{_NUMBER}% of requests",
    "held now": rf"(?P<count>{_NUMBER}) requests? queued at the client, limit (?P<limit>{_NUMBER}) in flight",
    "no token": (
        rf"(?:no token (?:arrives )?for (?P<seconds>{_SECONDS})(?: while requests are in flight)?"
        rf"|(?P<count>{_NUMBER}) such pauses, from (?P<starts>{_CLOCK}(?:, {_CLOCK})*(?:, …)?))"
    ),
    "kept now": rf"(?P<percent>{_NUMBER})% of the requests keep the objectives",
    "late now": rf"(?:requests sent {_SECONDS} late at p99|requests were sent late during the last seconds)",
    "sent now": rf"sent {_NUMBER} of {_NUMBER} req/s",
    "unknown": (
        rf"(?:cause unknown without the engine's {_EXPORTS}|the engine does not export its queue"
        rf"|the engine's newest sample is {_SECONDS} old|{_NUMBER} of the {_NUMBER} requests that a verdict needs"
        r"|requests of the warm-up are not counted|the engine is loading|the engine restarts"
        rf"|the engine restarted {_SECONDS} ago|no metrics for {_SECONDS})"
    ),
    "reading": (
        rf"(?:up to {_NUMBER} % of blocks|full before, now {_NUMBER} % of blocks|KV (?:only |up to )?{_NUMBER} %"
        rf"|{_NUMBER} preemptions(?:/s| in the last {_SECONDS})"
        rf"|{_NUMBER} in flight(?:, up by {_NUMBER} within {_SECONDS})?"
        rf"|nothing new is sent|done {_NUMBER} (?:of {_NUMBER} )?req/s|{_NUMBER} prompt tokens/s"
        rf"|engine (?:holds|counts) [+−]{_NUMBER}% (?:requests|tokens) vs client"
        rf"|client TTFT mean {_SECONDS}, engine's own {_SECONDS}: the difference arises outside the engine"
        rf"|closed-loop requests sent late: {_NUMBER}% less load|client event loop lagged {_SECONDS} at p99"
        rf"|tokens of {_NUMBER}% of requests are counted events: "
        r"the (?:server sends no usage|imported file has no count of the server)"
        rf"|ITL p99 is uncertain by {_SECONDS}: many events were read together"
        rf"|the usage of {_NUMBER}% of requests contradicts the stream or the tokens requested"
        rf"|outputs are {_NUMBER}% of what was requested \(the server ignores ignore_eos\)"
        r"|no request succeeded, so nothing was measured"
        rf"|prefix cache hit rate {_NUMBER}, but this workload explains at most {_NUMBER}: the cache held prompts .*"
        rf"|prefix cache hit rate {_NUMBER} of the ideal {_NUMBER}: prefixes were evicted or not cached"
        r"|the senders (?:may not use the real-time class; permit it: .*|left the real-time class, which needs"
        r" little of a processor: use --workers))"
    ),
}
"""One regular expression for each statement; what is between two statements is `, `, `; ` or `: `."""
