"""What applications do with the ORM, each step with what has to come of it."""

import sqlalchemy as sa
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.exc import IntegrityError
from sqlalchemy.orm import Session, joinedload, selectinload
from sqlalchemy.orm.exc import StaleDataError

from models import Customer, Line, Order, engine

db = engine()


def refused(work):
    with Session(db) as s:
        try:
            work(s)
            s.commit()
        except IntegrityError:
            return True
    return False


with Session(db) as s, s.begin():
    s.execute(sa.delete(Line))
    s.execute(sa.delete(Customer))
    assert s.scalar(sa.select(sa.func.count()).select_from(Order)) == 0
    anna = Customer(email="anna", tags=["a", "b"], data={"x": {"y": 1}})
    anna.orders = [Order(state="done", total=i, lines=[Line(n=1, product="p1"), Line(n=2, product="p2")]) for i in range(10)]
    s.add(anna)
    s.flush()
    assert anna.kind == "good" and all(o.id for o in anna.orders)

assert refused(lambda s: s.add(Customer(email="anna")))
assert refused(lambda s: s.add(Order(customer_id=-1)))
assert refused(lambda s: s.add(Order(customer_id=s.scalar(sa.select(Customer.id)), total=-1)))
assert refused(lambda s: s.add_all([Order(customer_id=s.scalar(sa.select(Customer.id))) for _ in range(2)]))

with Session(db) as s, s.begin():
    many = s.scalars(sa.insert(Customer).returning(Customer.id), [{"email": "c%d" % i} for i in range(500)]).all()
    assert len(set(many)) == 500
    up = insert(Customer).values(email="anna", tags=["c"])
    up = up.on_conflict_do_update(index_elements=["email"], set_={"tags": Customer.tags + up.excluded.tags})
    assert s.execute(up.returning(Customer.tags)).scalar() == ["a", "b", "c"]
    assert s.scalars(sa.select(Customer.email).where(Customer.data["x"]["y"].as_integer() == 1)).all() == ["anna"]
    assert s.scalars(sa.select(Customer.email).where(Customer.tags.any("b"))).all() == ["anna"]
    open_order = insert(Order).values(customer_id=many[0], state="open")
    assert s.execute(open_order.on_conflict_do_nothing(index_elements=["customer_id"], index_where=sa.text("state = 'open'"))).rowcount == 1
    assert s.execute(open_order.on_conflict_do_nothing(index_elements=["customer_id"], index_where=sa.text("state = 'open'"))).rowcount == 0

with Session(db) as s:
    anna = s.scalars(sa.select(Customer).where(Customer.email == "anna").options(selectinload(Customer.orders).selectinload(Order.lines))).one()
    assert len(anna.orders) == 10 and all(len(o.lines) == 2 for o in anna.orders)
    assert len(s.scalars(sa.select(Order).options(joinedload(Order.customer)).order_by(Order.made.desc(), Order.id)).all()) == 11
    order = s.scalars(sa.select(Order).where(Order.total == 5).with_for_update(of=Order)).one()
    with s.begin_nested() as point:
        s.execute(sa.update(Order).values(total=0))
        point.rollback()
    # a deferred key: two lines change places
    a, b = order.lines
    a.product, b.product = b.product, a.product
    order.total += 1
    s.commit()
    assert s.scalar(sa.select(sa.func.sum(Order.total))) == 46

# somebody else was first
with Session(db) as s, Session(db) as other:
    mine = s.scalars(sa.select(Order).where(Order.total == 9)).one()
    theirs = other.get(Order, mine.id)
    theirs.state = "sent"
    other.commit()
    mine.state = "lost"
    try:
        s.commit()
        raise AssertionError("an update was lost")
    except StaleDataError:
        pass

with Session(db) as s, s.begin():
    s.execute(sa.delete(Line))
    assert s.execute(sa.delete(Customer).where(Customer.email == "anna")).rowcount == 1
    assert s.scalar(sa.select(sa.func.count()).select_from(Order)) == 1

# what is there is what the models say
found = sa.inspect(db)
assert {i["name"] for i in found.get_indexes("order")} >= {"one_open", "by_time", "ix_order_customer_id"}
assert found.get_pk_constraint("line")["constrained_columns"] == ["order_id", "n"]
assert found.get_foreign_keys("order")[0]["options"] == {"ondelete": "CASCADE"}
assert found.get_unique_constraints("customer")[0]["column_names"] == ["email"]
reflected = sa.Table("order", sa.MetaData(), autoload_with=db)
assert {c.name for c in reflected.columns} >= {"id", "customer_id", "state", "total", "made", "version"}
