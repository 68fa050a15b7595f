import datetime
import decimal
import os

import sqlalchemy as sa
from sqlalchemy.dialects import postgresql as pg
from sqlalchemy.orm import DeclarativeBase, Mapped, mapped_column, relationship

LATER = "LATER" in os.environ


def engine():
    return sa.create_engine("postgresql+psycopg2://postgres@127.0.0.1:%s/%s" % (os.environ["PGTCP"], os.environ["PGDATABASE"]))


class Base(DeclarativeBase):
    metadata = sa.MetaData(naming_convention={"ix": "ix_%(column_0_label)s", "uq": "uq_%(table_name)s_%(column_0_name)s",
                                              "fk": "fk_%(table_name)s_%(column_0_name)s", "pk": "pk_%(table_name)s"})


class Customer(Base):
    __tablename__ = "customer"
    id: Mapped[int] = mapped_column(sa.BigInteger, sa.Identity(), primary_key=True)
    email: Mapped[str] = mapped_column(sa.String(100), unique=True)
    kind: Mapped[str] = mapped_column(sa.Enum("good", "bad", name="customer_kind"), server_default="good")
    tags: Mapped[list] = mapped_column(pg.ARRAY(sa.Text), server_default="{}")
    data: Mapped[dict] = mapped_column(pg.JSONB, server_default="{}")
    orders: Mapped[list["Order"]] = relationship(back_populates="customer", cascade="all, delete-orphan", passive_deletes=True)


class Order(Base):
    __tablename__ = "order"
    __table_args__ = (
        sa.Index("one_open", "customer_id", unique=True, postgresql_where=sa.text("state = 'open'")),
        sa.Index("by_time", sa.text("made DESC"), "id", postgresql_include=["state"]),
        sa.CheckConstraint("total >= 0", name="total_not_negative"),
    )
    id: Mapped[int] = mapped_column(primary_key=True)
    customer_id: Mapped[int] = mapped_column(sa.ForeignKey("customer.id", ondelete="CASCADE"), index=True)
    state: Mapped[str] = mapped_column(sa.Text, server_default="open")
    total: Mapped[decimal.Decimal] = mapped_column(sa.Numeric(10, 2), server_default="0")
    made: Mapped[datetime.datetime] = mapped_column(sa.TIMESTAMP(timezone=True), server_default=sa.func.now())
    version: Mapped[int] = mapped_column(server_default="1")
    if LATER:
        note: Mapped[str | None] = mapped_column(sa.Text, index=True)
    customer: Mapped[Customer] = relationship(back_populates="orders")
    lines: Mapped[list["Line"]] = relationship(cascade="all, delete-orphan")
    __mapper_args__ = {"version_id_col": version}


class Line(Base):
    __tablename__ = "line"
    __table_args__ = (sa.PrimaryKeyConstraint("order_id", "n"), sa.UniqueConstraint("order_id", "product", deferrable=True, initially="DEFERRED"))
    order_id: Mapped[int] = mapped_column(sa.ForeignKey("order.id"))
    n: Mapped[int]
    product: Mapped[str]
    amount: Mapped[int] = mapped_column(sa.BigInteger if LATER else sa.Integer, server_default="1")
