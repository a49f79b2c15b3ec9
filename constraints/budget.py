r"""Budget: capital at the start and yearly cost stay below what may be spent.

    Capital_Budget   sum over capital terms of price x quantity <= budget_capex_usd
    Yearly_Budget    yearly cost, capital as an annuity <= budget_usd_per_year

Capital and yearly prices are those of the bill (docs/method.md section 8). Binds when money is short.
"""

from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from optimizer.program_data import ProgramData

LIMITS: Final = ("budget_capex_usd", "budget_usd_per_year")


def add(model: Any, data: "ProgramData") -> None:
    """Rows of budgets."""
    from pyomo.core import Constraint

    economics = data.setting.instance.economics
    # What only rents pays no capital: there is nothing to limit.
    if economics.budget_capex_usd is not None and data.capital_by_quantity:
        limit = economics.budget_capex_usd
        share = sum(usd / limit * data.quantity(model, key) for key, usd in data.capital_by_quantity.items())
        model.Capital_Budget = Constraint(expr=share <= 1.0, doc="capital at the start")
    if economics.budget_usd_per_year is not None and data.yearly_by_quantity:
        limit = economics.budget_usd_per_year
        share = sum(usd / limit * data.quantity(model, key) for key, usd in data.yearly_by_quantity.items())
        model.Yearly_Budget = Constraint(expr=share <= 1.0, doc="yearly cost, capital as an annuity")
