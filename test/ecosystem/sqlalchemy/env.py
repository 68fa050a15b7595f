import sys

from alembic import context

sys.path.insert(0, ".")
import models

with models.engine().connect() as connection:
    context.configure(connection=connection, target_metadata=models.Base.metadata, compare_type=True, compare_server_default=True)
    with context.begin_transaction():
        context.run_migrations()
