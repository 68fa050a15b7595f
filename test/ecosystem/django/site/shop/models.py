from django.contrib.auth.models import User
from django.contrib.postgres.fields import ArrayField
from django.db import models
from django.db.models import F, Q
from django.db.models.functions import Lower


class Author(models.Model):
    name = models.CharField(max_length=100)
    email = models.EmailField(unique=True)
    user = models.OneToOneField(User, null=True, on_delete=models.SET_NULL)
    # later: born = models.DateField(null=True, db_index=True)

    class Meta:
        constraints = [models.UniqueConstraint(Lower("name"), name="author_lower_name")]


class Tag(models.Model):
    name = models.SlugField(primary_key=True)


class Book(models.Model):
    author = models.ForeignKey(Author, on_delete=models.CASCADE, related_name="books")
    follows = models.ForeignKey("self", null=True, on_delete=models.PROTECT)
    tags = models.ManyToManyField(Tag)
    title = models.TextField()
    words = ArrayField(models.CharField(max_length=20), default=list)
    data = models.JSONField(default=dict)
    price = models.DecimalField(max_digits=8, decimal_places=2)
    # later: pages = models.IntegerField(default=100)
    sold = models.BigIntegerField(default=0)
    current = models.BooleanField(default=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["author"], condition=Q(current=True, title="only"), name="one_current"),
            models.CheckConstraint(check=Q(price__gte=0), name="price_not_negative"),
            models.UniqueConstraint(fields=["author", "title", "price"], name="late", deferrable=models.Deferrable.DEFERRED),
            # later: models.CheckConstraint(check=Q(pages__gt=0), name="some_pages"),
        ]
        indexes = [models.Index(fields=["author", "-price"]), models.Index(F("sold") * -1, name="by_sold"),
                   models.Index(fields=["title"], condition=Q(current=True), name="current_titles", include=["price"])]
