# Django: migrations, constraints, the ORM's ways of writing, a second start.

[ -x "$CACHE/bin/python" ] || python3 -m venv "$CACHE"
"$CACHE/bin/python" -c 'import django, psycopg2' 2>/dev/null ||
	ok "Django is there" "$CACHE/bin/pip" -q install 'django<6' psycopg2-binary

work=$SANDBOX/tmp/django
rm -rf "$work"
cp -r "$HERE/site" "$work"
manage() { (cd "$work" && "$CACHE/bin/python" -W error::RuntimeWarning manage.py "$@"); }

ok "migrations are made" manage makemigrations shop -v 0
ok "... and done, those of Django's own applications, too" manage migrate -v 0
ok "nothing is left to be made" manage makemigrations --check --dry-run
is "$(manage migrate | tail -1)" "  No migrations to apply." "nor to be done at the second start"
ok "the ORM works" manage test_shop
ok "... at the second start, too" manage test_shop
sed -i 's/# later: //' "$work/shop/models.py"
ok "a later version changes columns and constraints" manage makemigrations shop -v 0
ok "... under rows" manage migrate -v 0
ok "... and works" manage test_shop
is "$(manage makemigrations --check --dry-run)" "No changes detected" "nothing is left to be made then"
ok "the models can be read from the catalogue" manage inspectdb
is "$(grep -c 'ForeignKey' "$TMPDIR/tap.out")" "$(grep -c 'ForeignKey' <(manage inspectdb))" "... the same each time"
ok "it goes back, too" manage migrate -v 0 shop 0001
ok "... and forth" manage migrate -v 0
ok "Django's tables are emptied" manage flush --no-input
ok "... and used" manage test_shop
