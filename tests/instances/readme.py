"""The tables and answers in ``instances/README.md``: written from the kept answers, so that none of them rots."""

import re
from collections.abc import Callable
from typing import Final

from optimizer.limits import limit
from tests.instances.library import FOLDER, Record, expected, expected_evaluations, expected_path, names

README: Final = FOLDER / "README.md"
_BLOCK: Final = re.compile(r"<!-- (\w+)(?:: ([\w -]+))? -->\n.*?<!-- end -->", re.DOTALL)


def write() -> None:
    """Write every generated block anew."""
    README.write_text(refreshed(README.read_text(encoding="utf-8")), encoding="utf-8")


def refreshed(text: str) -> str:
    """The text with every generated block made from the kept answers."""

    def block(match: re.Match[str]) -> str:
        kind, argument = match.group(1), match.group(2) or ""
        body = _KINDS[kind](argument)
        head = f"{kind}: {argument}" if argument else kind
        return f"<!-- {head} -->\n{body}\n<!-- end -->"

    return _BLOCK.sub(block, text)


def told() -> set[str]:
    """Instances whose answer the README tells."""
    return {
        match.group(2) for match in _BLOCK.finditer(README.read_text(encoding="utf-8")) if match.group(1) == "answer"
    }


def _money(usd: float) -> str:
    return f"{usd:,.0f}" if usd >= 100 else f"{usd:,.2f}"


def _fleet(kept: Record) -> str:
    parts = []
    for pool, group in kept["servers"].items():
        kind, *how = pool.split("/")
        stands = {"buy": "bought", "owned": "owned"}.get(how[0])
        place = f", {how[1]}" if len(how) > 1 else ""
        word = f"{kind} {stands}{place}" if stands else f"{kind} rented, {how[0].replace('_', ' ')}{place}"
        spare = f", {group['spare']} of them spare" if group["spare"] else ""
        racks = f", {group['racks']} racks" if group["racks"] else ""
        parts.append(f"{group['servers']} servers {word}{racks}{spare}")
    return "; ".join(parts)


def _schemes(kept: Record) -> str:
    shown = []
    for scheme in kept["schemes"]:
        weights, kv, step = scheme.split("+")
        shown.append(weights + ("" if kv == "kv16" else f", {kv}") + ("" if step == "none" else f", {step}"))
    return "; ".join(shown)


def _count(kept: Record) -> str:
    return " + ".join(f"{count:,} {key}" for key, count in kept["accelerators"].items())


def _head(*columns: str) -> list[str]:
    """Head of a table; a column whose name starts with ``>`` is set to the right."""
    names_only = " | ".join(column.removeprefix("> ") for column in columns)
    return [
        f"| {names_only} |",
        "|" + "|".join("--:" if column.startswith("> ") else "---" for column in columns) + "|",
    ]


def _overview(_: str) -> str:
    lines = _head("instance", "accelerators", "bits and recovery", "> USD/h", "> USD per million output tokens")
    for name in names():
        kept = expected(name)
        if is_training(name):
            continue
        link = f"[{name}]({name}.json)"
        if "usd_per_hour" not in kept:
            lines.append(f"| {link} | nothing fits | | | |")
            continue
        per_million = kept["usd_per_million_output_tokens"]
        lines.append(
            f"| {link} | {_count(kept)} | {_schemes(kept)} | {_money(kept['usd_per_hour'])} | {per_million:.2f} |"
        )
    return "\n".join(lines)


def is_training(name: str) -> bool:
    """Instances of training are named so."""
    return name.startswith("train-")


def _training(_: str) -> str:
    """Every run: what it takes and costs."""
    lines = _head(
        "instance",
        "accelerators of the run",
        "format",
        "> days (80 % band)",
        "> goodput",
        "> MFU of a step",
        "> of the run",
        "> million hours",
        "> million USD",
        "> USD/hour",
    )
    for name in filter(is_training, names()):
        kept = expected(name)
        link = f"[{name}]({name}.json)"
        if "training" not in kept:
            lines.append(f"| {link} | nothing fits |" + " |" * 8)
            continue
        for job in kept["training"]["jobs"]:
            low, high = job["days_band"]
            who = link if job["name"] == "all" else f"{link}, {job['name']}"
            lines.append(
                f"| {who} | {job['accelerators']:,} {job['accelerator']} | {job['precision']} "
                f"| {job['days']:.0f} ({low:.0f}..{high:.0f}) | {job['goodput_fraction']:.0%} "
                f"| {job['mfu_fraction']:.0%} | {job['run_mfu_fraction']:.0%} "
                f"| {job['accelerator_hours'] / 1e6:.2f} | {job['usd'] / 1e6:.2f} "
                f"| {job['usd_per_accelerator_hour']:.2f} |"
            )
    return "\n".join(lines)


def _trained(kept: Record) -> str:
    """The answer of a run, or of several."""
    training = kept["training"]
    runs = []
    for job in training["jobs"]:
        who = "" if job["name"] == "all" else f"{job['name']}, from day {job['start_day']:.0f}: "
        low, high = job["days_band"]
        over = "" if job["method"] == "one_site" else f", {job['method'].replace('_', ' ')} over the sites"
        runs.append(
            f"{who}{job['accelerators']:,} {job['accelerator']} in {job['precision']}, {job['layout']}{over}: "
            f"{job['days']:.1f} days (80 % band {low:.0f} to {high:.0f}), {job['run_tflops_per_accelerator']:.0f} "
            f"TFLOP/s each over the run"
        )
    costs = sorted(kept["usd_per_hour_by_component"].items(), key=lambda item: -item[1])
    shares = ", ".join(f"{key} {usd / kept['usd_per_hour']:.0%}" for key, usd in costs[:4])
    holds = ", ".join(dict.fromkeys(limit(row.split()[0]).label for row in kept["binding"])) or "nothing"
    next_best = ""
    for one in kept["next_best"]:
        if one["usd_per_hour"] is not None:
            extra = one["usd_per_hour"] / kept["usd_per_hour"] - 1.0
            next_best = f" Next best without {one['without']}: {one['summary']}, {extra:+.1%}."
    sites = training["power_kw_by_site"]
    stands = "; ".join(f"{site} {kw / 1e3:.1f} MW" for site, kw in sites.items()) if len(sites) > 1 else ""
    return (
        f"**{training['usd'] / 1e6:,.2f} million USD in {training['days']:.0f} days**. {'; '.join(runs)}.\n"
        + (f"Sites: {stands}.\n" if stands else "")
        + f"Held back by {holds}. Of the cost: {shares}; {kept['assumed_fraction']:.0%} rests on assumed figures."
        + next_best
    )


def _answer(name: str) -> str:
    kept = expected(name)
    if "training" in kept:
        return _trained(kept)
    if "usd_per_hour" not in kept:
        return _no_answer(kept)
    layouts = []
    for one in kept["deployments"]:
        who = "" if one["request_class"] == "all" else f"{one['request_class']}: "
        layouts.append(
            f"{who}{one['replicas']} x {one['layout']} on {one['accelerator']}, {one['concurrency']} in flight, "
            f"TPOT {one['tpot_ms']:.0f} ms, TTFT {one['ttft_ms']:,.0f} ms, {one['vram_gib']:.0f} GiB each"
        )
    costs = sorted(kept["usd_per_hour_by_component"].items(), key=lambda item: -item[1])
    total = kept["usd_per_hour"]
    shares = ", ".join(f"{key} {usd / total:.0%}" for key, usd in costs[:4] if usd > 0.005 * total)
    holds = ", ".join(dict.fromkeys(limit(row.split()[0]).label for row in kept["binding"]))
    next_best = ""
    for one in kept["next_best"]:
        if one["usd_per_hour"] is None:
            next_best = f" Nothing else meets every limit (without {one['without']})."
        else:
            next_best = (
                f" Next best: {one['summary']}, {one['usd_per_hour'] / total - 1:+.1%} ({one['reason']}; it is the "
                f"cheapest plan without {one['without']})."
            )
    unmeasured = ", ".join(kept["unmeasured"])
    caution = f" No measured serving point stands behind {unmeasured}: measure before buying." if unmeasured else ""
    stopped = "" if kept["holds"] == "proven" else " (not proven: the time limit came first)"
    return (
        f"**{_count(kept)}, {_schemes(kept)}: {_money(total)} USD/h**{stopped}. {_fleet(kept)}.\n"
        f"{'; '.join(layouts)}.\n"
        f"Held back by {holds}. Of the cost: {shares}; {kept['assumed_fraction']:.0%} rests on assumed figures."
        f"{next_best}{caution}"
    )


def _no_answer(kept: Record) -> str:
    kills = ", ".join(f"{limit(key).label} {count:,}" for key, count in kept["kills"].items())
    stage = "no deployment meets its limits" if kept["stage"] == "no_candidate" else "deployments exist, no fleet fits"
    single = [*kept["changes"], *kept["widenings"]]
    # A run's own cost stands in the summary: its hours are not those of the horizon.
    priced = (
        one["summary"] if "in all" in one["summary"] else f"{one['summary']} ({_money(one['usd_per_hour'])} USD/h then)"
        for one in single
    )
    changes = "; or ".join(priced)
    clash = ", ".join(f"{one['field']} {one['value']} {one['unit']}".rstrip() for one in kept["clash"])
    together = "; or ".join(f"{one['summary']} ({_money(one['usd_per_hour'])} USD/h then)" for one in kept["combined"])
    killed = f" Candidates that each limit refuses: {kills}." if kills else ""
    several = f"\nTogether suffice: {together}." if together else ""
    return (
        f"**Nothing fits: {stage}.**{killed}\n"
        + (f"Clash: {clash}.\n" if clash else "")
        + f"One change suffices: {changes or 'none does'}.{several}"
    )


def _table(argument: str) -> str:
    """Instances side by side, with what physics and bill make of them."""
    lines = _head(
        "instance",
        "accelerators",
        "bits",
        "GiB used (weights)",
        "> TPOT ms",
        "> link GB/s",
        "> kW",
        "> PUE",
        "> cooling USD/h",
        "> energy USD/h",
        "> USD/h",
    )
    for name in argument.split():
        kept = expected(name)
        if "usd_per_hour" not in kept:
            lines.append(f"| {name} | nothing fits |" + " |" * 9)
            continue
        one = max(kept["deployments"], key=lambda row: row["replicas"])
        bill = kept["usd_per_hour_by_component"]
        pue = ", ".join(f"{value:.2f}" for value in kept["pue_mean"].values()) or "-"
        lines.append(
            f"| {name} | {_count(kept)} | {_schemes(kept)} | {one['vram_gib']:.1f} ({one['weights_gib']:.1f}) "
            f"| {one['tpot_ms']:.0f} | {one['nvlink_gb_s']:.0f} | {kept['power_kw']:,.0f} | {pue} "
            f"| {bill.get('cooling', 0.0):.1f} | {bill.get('energy', 0.0):.1f} | {_money(kept['usd_per_hour'])} |"
        )
    return "\n".join(lines)


def _guess(argument: str) -> str:
    """The story's guess beside the answers."""
    lines = [
        *_head(
            "",
            "> A100",
            "bits",
            "> GiB of weights each",
            "> GiB used each",
            "> TB used in all",
            "> capital, million USD",
            "> USD/h",
        ),
        "| the story's guess | 2,000 | not said | 12 with sharding | 48 | 96 | | |",
    ]
    for name in argument.split():
        kept = expected(name)
        if "usd_per_hour" not in kept:
            lines.append(f"| {name} | nothing fits |" + " |" * 6)
            continue
        one = max(kept["deployments"], key=lambda row: row["replicas"])
        count = sum(kept["accelerators"].values())
        lines.append(
            f"| {name} | {count:,} | {_schemes(kept)} | {one['weights_gib']:.1f} | {one['vram_gib']:.1f} "
            f"| {count * one['vram_gib'] * 2**30 / 1e12:,.0f} | {kept['capital_usd'] / 1e6:.1f} "
            f"| {_money(kept['usd_per_hour'])} |"
        )
    return "\n".join(lines)


def _proposals(_: str) -> str:
    """Shipped proposals against the instances that they are held against."""
    lines = _head(
        "proposal",
        "instance",
        "layout, in flight",
        "> GiB used (weights)",
        "> TB used in all",
        "limits",
        "> USD/h",
        "> optimum",
    )
    for name, others in expected_evaluations().items():
        for other, kept in others.items():
            if "training" in kept:
                continue
            one = kept["deployment"]
            layout = f"{one['replicas']} x {one['layout']}, {one['concurrency']}"
            state = (
                "keeps all"
                if kept["keeps_every_limit"]
                else "breaks " + "; ".join(text.rpartition(" (")[0] for text in kept["broken"])
            )
            total = kept["accelerators"] * one["vram_gib"] * 2**30 / 1e12
            lines.append(
                f"| [{name}](proposals/{name}.json) | {other} | {layout} "
                f"| {one['vram_gib']:.1f} ({one['weights_gib']:.1f}) | {total:,.0f} | {state} "
                f"| {_money(kept['usd_per_hour'])} | {kept['extra_fraction']:+.1%} |"
            )
    return "\n".join(lines)


def _runs_proposed(_: str) -> str:
    """Shipped proposals for training against the instances that they are held against."""
    lines = _head("proposal", "instance", "layout", "> days (80 % band)", "limits", "> million USD", "> optimum")
    for name, others in expected_evaluations().items():
        for other, kept in others.items():
            for job in kept.get("training", {}).get("jobs", ()):
                low, high = job["days_band"]
                state = "keeps all" if kept["keeps_every_limit"] else "breaks " + "; ".join(kept["broken"])
                cost = f"{kept['training']['usd'] / 1e6:.2f} | {kept['extra_fraction']:+.1%}"
                days = f"{job['days']:.0f} ({low:.0f}..{high:.0f})"
                lines.append(
                    f"| [{name}](proposals/{name}.json) | {other} | {job['layout']} | {days} | {state} | {cost} |"
                )
    return "\n".join(lines)


_KINDS: Final[dict[str, Callable[[str], str]]] = {
    "overview": _overview,
    "answer": _answer,
    "table": _table,
    "training": _training,
    "guess": _guess,
    "proposals": _proposals,
    "runs_proposed": _runs_proposed,
}


def missing() -> tuple[str, ...]:
    """Instances without a kept answer."""
    return tuple(name for name in names() if not expected_path(name).exists())
