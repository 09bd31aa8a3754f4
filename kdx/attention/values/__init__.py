"""Value functions (Sec. 2.2.3 of Tsai et al. 2019)."""

from kdx.attention.interfaces import ValueFunction
from kdx.attention.values.table import WithTable
from kdx.attention.values.with_position import WithPosition
from kdx.attention.values.without_position import WithoutPosition
from kdx.axes import Value

VALUES: dict[Value, type[ValueFunction]] = {
    Value.WITHOUT_POSITION: WithoutPosition,
    Value.WITH_POSITION: WithPosition,
    Value.TABLE: WithTable,
}
