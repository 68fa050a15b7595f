"""What applications do with rows, each step with what has to come of it."""

import decimal

from django.core.management.base import BaseCommand
from django.db import IntegrityError, connection, transaction
from django.db.models import Count, F, ProtectedError, Sum
from django.test.utils import CaptureQueriesContext

from shop.models import Author, Book, Tag


def refused(work):
    try:
        with transaction.atomic():
            work()
    except IntegrityError:
        return True
    return False


class Command(BaseCommand):
    def handle(self, *args, **options):
        Book.objects.update(follows=None)
        Author.objects.all().delete()
        Tag.objects.all().delete()

        with transaction.atomic():
            anna = Author.objects.create(name="Anna", email="anna@example.org")
            bert, new = Author.objects.get_or_create(email="bert@example.org", defaults={"name": "Bert"})
        assert new and not Author.objects.get_or_create(email="bert@example.org", defaults={"name": "B"})[1]
        assert refused(lambda: Author.objects.create(name="ANNA", email="other@example.org"))
        assert refused(lambda: Author.objects.create(name="Carl", email="anna@example.org"))

        Tag.objects.bulk_create([Tag(name="t%d" % i) for i in range(20)])
        Tag.objects.bulk_create([Tag(name="t%d" % i) for i in range(15, 30)], ignore_conflicts=True)
        assert Tag.objects.count() == 30
        Book.objects.bulk_create([Book(author=anna if i % 2 else bert, title="book %d" % i, price=i,
                                       words=["w%d" % i, "x"], data={"n": i, "in": {"a": [i]}}) for i in range(100)])
        first = Book.objects.get(title="book 1")
        first.tags.set(Tag.objects.filter(name__in=["t1", "t2"]))
        assert sorted(t.name for t in first.tags.all()) == ["t1", "t2"]
        assert Book.objects.filter(words__contains=["w7"]).get().title == "book 7"
        assert Book.objects.filter(data__in__a__0=9).get().price == 9
        assert Book.objects.filter(title__startswith="book 1").count() == 11
        assert [b.title for b in Book.objects.filter(author=anna).order_by("-price")[:2]] == ["book 99", "book 97"]
        assert refused(lambda: Book.objects.filter(title="book 3").update(price=-1))
        with CaptureQueriesContext(connection) as queries:
            assert all(b.author.name in ("Anna", "Bert") for b in Book.objects.select_related("author"))
        assert len(queries) == 1

        # partial and deferred keys
        Book.objects.create(author=anna, title="only", price=1)
        assert refused(lambda: Book.objects.create(author=anna, title="only", price=2))
        Book.objects.create(author=anna, title="only", price=2, current=False)
        with transaction.atomic():
            a, b = Book.objects.filter(title__in=["book 10", "book 12"]).order_by("id")
            Book.objects.filter(id=a.id).update(title="book 12", price=12)
            Book.objects.filter(id=b.id).update(title="book 10", price=10)
        assert refused(lambda: Book.objects.create(author=bert, title="book 12", price=12))

        # counters, locks, savepoints
        for _ in range(10):
            Book.objects.filter(title="book 5").update(sold=F("sold") + 1)
        with transaction.atomic():
            book = Book.objects.select_for_update(of=("self",)).get(title="book 5")
            book.sold += 5
            book.save(update_fields=["sold"])
            point = transaction.savepoint()
            Book.objects.all().update(sold=0)
            transaction.savepoint_rollback(point)
        assert Book.objects.get(title="book 5").sold == 15
        Book.objects.bulk_update([Book(id=book.id, sold=16)], ["sold"])
        made, new = Book.objects.update_or_create(title="book 6", defaults={"sold": 3})
        assert not new and made.sold == 3
        assert Author.objects.annotate(n=Count("books"), s=Sum("books__sold")).get(name="Anna").s == 16
        assert Book.objects.aggregate(s=Sum("price"))["s"] == decimal.Decimal(sum(range(100)) + 3)
        assert len(list(Book.objects.all().iterator(chunk_size=7))) == 102

        # what deletes do to those that point there
        second = Book.objects.get(title="book 2")
        second.follows = first
        second.save()
        try:
            first.delete()
            raise AssertionError("a protected row was deleted")
        except ProtectedError:
            pass
        assert refused(lambda: connection.cursor().execute("DELETE FROM shop_author WHERE name = 'Bert'; SET CONSTRAINTS ALL IMMEDIATE"))
        second.delete()
        assert anna.delete()[1]["shop.Book"] == 52
        assert Book.objects.count() == 49
