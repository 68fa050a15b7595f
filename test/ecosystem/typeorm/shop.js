// What applications do with TypeORM, each step with what has to come of it.
'use strict';
require('reflect-metadata');
const assert = require('assert');
const { DataSource, EntitySchema, QueryFailedError } = require('typeorm');

const second = process.argv.includes('second');
const later = process.argv.includes('later');

const Account = new EntitySchema({
  name: 'account',
  columns: {
    id: { type: 'bigint', primary: true, generated: 'increment' },
    email: { type: 'varchar', length: 100, unique: true },
    roles: { type: 'text', array: true, default: '{}' },
    settings: { type: 'jsonb', default: {} },
    created: { type: 'timestamptz', createDate: true },
    version: { type: 'int', version: true },
    gone: { type: 'timestamptz', deleteDate: true, nullable: true },
    ...(later ? { nick: { type: 'varchar', length: 50, nullable: true } } : {}),
  },
  indices: [{ name: 'one_admin', columns: ['email'], unique: true, where: '"gone" IS NULL' },
    ...(later ? [{ name: 'by_nick', columns: ['nick'] }] : [])],
  relations: { posts: { type: 'one-to-many', target: 'post', inverseSide: 'account' } },
});

const Post = new EntitySchema({
  name: 'post',
  columns: {
    id: { type: 'uuid', primary: true, generated: 'uuid' },
    title: { type: 'text' },
    score: { type: later ? 'bigint' : 'int', default: 0 },
    kind: { type: 'enum', enum: ['draft', 'public'], default: 'draft' },
  },
  indices: [{ name: 'by_score', columns: ['score', 'id'] }],
  checks: [{ name: 'score_range', expression: '"score" < 1000000' }],
  relations: {
    account: { type: 'many-to-one', target: 'account', inverseSide: 'posts', nullable: false, onDelete: 'CASCADE', joinColumn: true },
    labels: { type: 'many-to-many', target: 'label', joinTable: true },
  },
});

const Label = new EntitySchema({ name: 'label', columns: { name: { type: 'varchar', length: 30, primary: true } } });

async function refused(work) {
  try {
    await work();
  } catch (error) {
    assert(error instanceof QueryFailedError, String(error));
    return error.driverError.code;
  }
  return 'no';
}

async function main() {
  const db = new DataSource({
    type: 'postgres', host: '127.0.0.1', port: Number(process.env.PGTCP), username: 'postgres', database: process.env.PGDATABASE,
    entities: [Account, Post, Label], uuidExtension: 'pgcrypto', installExtensions: false,
  });
  await db.initialize();
  const wanted = await db.driver.createSchemaBuilder().log();
  if (second) {
    assert.deepStrictEqual(wanted.upQueries.map((q) => q.query), []);
  } else {
    assert(wanted.upQueries.length > 0);
  }
  await db.synchronize();

  const accounts = db.getRepository('account');
  const posts = db.getRepository('post');
  await posts.query('DELETE FROM account');
  assert.strictEqual(await posts.count(), 0);
  await db.getRepository('label').query('DELETE FROM label');

  const anna = await accounts.save({ email: 'anna', roles: ['admin', 'user'], settings: { theme: { dark: true } } });
  assert.strictEqual(await refused(() => accounts.insert({ email: 'anna' })), '23505');
  assert.strictEqual(await refused(() => posts.insert({ title: 'x', account: { id: -1 } })), '23503');
  assert.strictEqual(await refused(() => posts.insert({ title: 'x', account: anna, score: 1000000 })), '23514');
  assert.strictEqual(await refused(() => posts.insert({ title: null, account: anna })), '23502');
  const labels = await db.getRepository('label').save([{ name: 'a' }, { name: 'b' }]);
  await posts.save(Array.from({ length: 60 }, (_, i) => ({ title: `post ${i}`, score: i, account: anna, labels: i % 2 ? labels : [] })));
  assert.strictEqual(await posts.countBy({ kind: 'draft' }), 60);

  const found = await posts.find({ relations: { account: true, labels: true }, order: { score: 'DESC' }, take: 5, skip: 1 });
  assert.deepStrictEqual(found.map((p) => [Number(p.score), p.labels.length, p.account.email]),
    [58, 57, 56, 55, 54].map((s) => [s, s % 2 * 2, 'anna']));
  assert.strictEqual((await accounts.createQueryBuilder('a').where("a.settings->'theme'->>'dark' = :d AND :r = ANY (a.roles)",
    { d: 'true', r: 'user' }).getMany()).length, 1);

  await accounts.upsert([{ email: 'anna', roles: ['none'] }, { email: 'bert' }], ['email']);
  assert.deepStrictEqual((await accounts.findOneByOrFail({ email: 'anna' })).roles, ['none']);
  await accounts.createQueryBuilder().insert().values({ email: 'bert' }).orIgnore().execute();
  assert.strictEqual(await accounts.count(), 2);

  await db.transaction('SERIALIZABLE', async (tx) => {
    const post = await tx.findOne('post', { where: { title: 'post 7' }, lock: { mode: 'pessimistic_write' } });
    await tx.increment('post', { id: post.id }, 'score', 10);
    await assert.rejects(tx.transaction(async (inner) => {
      await inner.update('post', {}, { title: 'lost' });
      throw new Error('back');
    }));
  });
  assert.strictEqual(Number((await posts.findOneByOrFail({ title: 'post 7' })).score), 17);
  assert.strictEqual(await posts.countBy({ title: 'lost' }), 0);

  const bert = await accounts.findOneByOrFail({ email: 'bert' });
  await accounts.softRemove(bert);
  assert.strictEqual(await accounts.count(), 1);
  await accounts.recover(bert);
  let n = 0;
  const stream = await posts.createQueryBuilder('p').select('p.title').orderBy('p.id').getMany();
  n += stream.length;
  assert.strictEqual(n, 60);
  await accounts.delete({ email: 'anna' });
  assert.strictEqual(await posts.count(), 0);
  await db.destroy();
}

main().catch((error) => {
  console.error(error);
  process.exit(1);
});
