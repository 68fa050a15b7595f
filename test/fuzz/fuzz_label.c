/*-------------------------------------------------------------------------
 *
 * fuzz_label.c
 *	  Labels of keys: whatever bytes there are is one or none; and those put between others, in
 *	  whichever order, are between them, as numbers and as bytes.
 *
 *-------------------------------------------------------------------------
 */
#include "fuzz.h"

#include "../../src/relation/label.c"

#define MOST 256

void
MotKeyBufferGrow(MotKeyBuffer *buf, size_t more)
{
	uint8	   *data = palloc(2 * buf->size + more);

	memcpy(data, buf->data, buf->len);
	buf->size = 2 * buf->size + more;
	buf->data = data;
}

static void
begin_buffer(MotKeyBuffer *buf)
{
	memset(buf, 0, sizeof(MotKeyBuffer));
	buf->data = palloc(1);
}

static void
read_it(const uint8 *bytes, size_t size, uint8 flip)
{
	MotLabel	label;
	size_t		len = MotLabelTake(bytes, size, flip, &label);
	MotKeyBuffer buf;

	if (len == 0)
		return;
	if (len > size || label.nwords < 2 || label.nwords > MOT_LABEL_WORDS)
		abort();
	begin_buffer(&buf);
	MotLabelAppend(&label, flip, &buf);
	if (buf.len != len || memcmp(buf.data, bytes, len) != 0)
		abort();
}

/* as numbers, and as bytes */
static void
in_order(const MotLabel *a, const MotLabel *b)
{
	MotKeyBuffer x;
	MotKeyBuffer y;
	int			order;

	if (a == NULL || b == NULL)
		return;
	if (MotLabelCompare(a, b) >= 0 || MotLabelCompare(b, a) <= 0 || MotLabelCompare(a, a) != 0)
		abort();
	for (int flip = 0; flip <= 0xff; flip += 0xff)
	{
		begin_buffer(&x);
		begin_buffer(&y);
		MotLabelAppend(a, flip, &x);
		MotLabelAppend(b, flip, &y);
		read_it(x.data, x.len, flip);
		order = memcmp(x.data, y.data, Min(x.len, y.len));
		if (flip ? order <= 0 : order >= 0)
			abort();
	}
}

/* each byte says where the next one comes, and how */
static void
put_between(const uint8 *bytes, size_t size)
{
	MotLabel   *labels[MOST];
	int			n = 0;
	int			at = 0;

	for (size_t i = 0; i < size && n < MOST; i++)
	{
		MotLabel   *label = palloc(sizeof(MotLabel));
		const MotLabel *lo;
		const MotLabel *hi;
		int			how = bytes[i] & 3;

		/* behind the last one, before it, or anywhere */
		if (how == 0)
			at = Min(at + 1, n);
		else if (how > 1)
			at = (bytes[i] >> 2) * (n + 1) / 64;
		lo = at > 0 ? labels[at - 1] : NULL;
		hi = at < n ? labels[at] : NULL;
		if (!(how == 3 ? MotLabelMiddle(lo, hi, label) :
			  MotLabelBetween(lo, hi, how == 2 ? 0 : (int) (i % 40) * (how == 0 ? 1 : -1), label)))
			continue;
		if (label->nwords < 2 || label->nwords > MOT_LABEL_WORDS ||
			(label->nwords > 2 && label->words[label->nwords - 1] == 0))
			abort();
		in_order(lo, label);
		in_order(label, hi);
		memmove(&labels[at + 1], &labels[at], (n - at) * sizeof(MotLabel *));
		labels[at] = label;
		n++;
	}
}

static void
spread(uint64 n)
{
	MotLabel	a;
	MotLabel	b;

	for (uint64 i = 1; i < Min(n, 32); i++)
	{
		MotLabelSpread(i - 1, n, &a);
		MotLabelSpread(i, n, &b);
		in_order(&a, &b);
	}
}

int
LLVMFuzzerTestOneInput(const uint8 *data, size_t size)
{
	/* a copy that ends where the bytes end */
	uint8	   *bytes = memcpy(palloc(size), data, size);
	uint64		n = 0;

	read_it(bytes, size, 0);
	read_it(bytes, size, 0xff);
	put_between(bytes, size);
	memcpy(&n, bytes, Min(size, sizeof(n)));
	/* (of as many rows as can be) */
	spread(n >> (24 + n % 40));
	fuzz_free_all();
	return 0;
}
