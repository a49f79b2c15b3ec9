"""A fabric in three sizes: 16, 32, more."""

from optimizer.catalog.rows import Fabric


def fabrics(speed: float = 50.0) -> dict[float, tuple[Fabric, ...]]:
    """Sizes of the fabric for links of ``speed`` GB/s."""
    return {
        speed: tuple(
            Fabric(
                id=f"tier{tiers}",
                scale_out_gb_s=speed,
                tiers=tiers,
                max_accelerators=most,
                low_usd_per_accelerator=float(tiers),
                typical_usd_per_accelerator=float(tiers),
                high_usd_per_accelerator=float(tiers),
                power_w_per_accelerator=1.0,
            )
            for tiers, most in ((1, 16), (2, 32), (3, 512))
        )
    }
