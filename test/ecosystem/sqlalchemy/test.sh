# SQLAlchemy with Alembic: migrations, reflection, autogenerate, the ORM.

[ -x "$CACHE/bin/python" ] || python3 -m venv "$CACHE"
"$CACHE/bin/python" -c 'import sqlalchemy, alembic, psycopg2' 2>/dev/null ||
	ok "SQLAlchemy and Alembic are there" "$CACHE/bin/pip" -q install 'sqlalchemy<2.1' alembic psycopg2-binary

work=$SANDBOX/tmp/sqlalchemy
rm -rf "$work"
cp -r "$HERE" "$work"
mkdir -p "$work/versions"
alembic() { (cd "$work" && "$CACHE/bin/python" -B -m alembic "$@"); }
shop() { (cd "$work" && "$CACHE/bin/python" -B shop.py "$@"); }

ok "a first migration is generated" alembic revision --autogenerate -m first
ok "... and done" alembic upgrade head
ok "autogenerate finds nothing to do" alembic check
ok "the ORM works" shop
ok "... at the second start, too" alembic upgrade head
ok "... and again" shop
LATER=yes ok "a second migration is generated" env LATER=yes bash -c "cd '$work' && '$CACHE/bin/python' -B -m alembic revision --autogenerate -m second"
ok "... and done under rows" alembic upgrade head
ok "autogenerate finds nothing to do then" env LATER=yes bash -c "cd '$work' && '$CACHE/bin/python' -B -m alembic check"
ok "... and the ORM works" env LATER=yes bash -c "cd '$work' && '$CACHE/bin/python' -B shop.py"
ok "back to nothing" alembic downgrade base
# (Alembic leaves types where they are)
sql 'DROP TYPE customer_kind'
ok "... and up again" alembic upgrade head
ok "... with work" env LATER=yes bash -c "cd '$work' && '$CACHE/bin/python' -B shop.py"
