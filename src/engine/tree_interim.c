/* A sorted array under one lock: holds the place of the Masstree until its files land. */
#if !__has_include("tree_cursor.c")
#include "tree.h"
#include "tree_cursor.h"
#include <stdio.h>
typedef struct ent { uint64_t v; uint32_t len; uint8_t key[]; } ent;
struct mot_tree { mot_spinlock l; mot_pool *pool; mot_cache *c; ent **a; size_t n, cap; };
static int kc(const void*a,size_t al,const void*b,size_t bl){size_t m=al<bl?al:bl;int r=memcmp(a,b,m);if(r)return r;return al<bl?-1:al>bl;}
uint64_t mot_node_version(const mot_node*n){(void)n;return 1;}
mot_tree *mot_tree_create(mot_tree_context *ctx, mot_pool *pool){mot_tree*t=mot_alloc(ctx->cache,pool,sizeof*t,MOT_FOR_CHANGE,0);if(t){memset(t,0,sizeof*t);t->pool=pool;}return t;}
static size_t lb(const mot_tree*t,const void*k,size_t l){size_t lo=0,hi=t->n;while(lo<hi){size_t m=(lo+hi)/2;if(kc(t->a[m]->key,t->a[m]->len,k,l)<0)lo=m+1;else hi=m;}return lo;}
uint64_t mot_tree_get(const mot_tree*ct,const void*k,size_t l,const mot_observer*o){mot_tree*t=(mot_tree*)ct;(void)o;mot_spin_lock(&t->l);size_t i=lb(t,k,l);uint64_t v=0;if(i<t->n&&kc(t->a[i]->key,t->a[i]->len,k,l)==0)v=t->a[i]->v;mot_spin_unlock(&t->l);return v;}
static bool ins(mot_tree*t,mot_tree_context*ctx,size_t i,const void*k,size_t l,uint64_t v,mot_purpose p){
 if(t->n==t->cap){size_t c=t->cap?t->cap*2:64;ent**a=mot_alloc(ctx->cache,t->pool,c*sizeof*a,p,0);if(!a)return false;if(t->a){memcpy(a,t->a,t->n*sizeof*a);mot_free(ctx->cache,t->a);}t->a=a;t->cap=c;}
 ent*e=mot_alloc(ctx->cache,t->pool,sizeof(ent)+l,p,0);if(!e)return false;e->v=v;e->len=l;memcpy(e->key,k,l);memmove(t->a+i+1,t->a+i,(t->n-i)*sizeof(ent*));t->a[i]=e;t->n++;return true;}
static void del(mot_tree*t,mot_tree_context*ctx,size_t i){mot_free(ctx->cache,t->a[i]);memmove(t->a+i,t->a+i+1,(t->n-i-1)*sizeof(ent*));t->n--;}
mot_tree_status mot_tree_cas(mot_tree*t,mot_tree_context*ctx,const void*k,size_t l,uint64_t ex,uint64_t de,uint64_t*ac,mot_purpose p,const mot_observer*o){(void)o;mot_tree_status r=MOT_TREE_OK;mot_spin_lock(&t->l);size_t i=lb(t,k,l);bool f=i<t->n&&kc(t->a[i]->key,t->a[i]->len,k,l)==0;uint64_t v=f?t->a[i]->v:0;*ac=v;if(v!=ex)r=MOT_TREE_MISMATCH;else if(!f){if(de&&!ins(t,ctx,i,k,l,de,p))r=MOT_TREE_NO_MEMORY;}else if(de)t->a[i]->v=de;else del(t,ctx,i);mot_spin_unlock(&t->l);return r;}
mot_tree_status mot_tree_change(mot_tree*t,mot_tree_context*ctx,const void*k,size_t l,uint64_t(*ch)(void*,uint64_t),void*arg){mot_tree_status r=MOT_TREE_MISMATCH;mot_spin_lock(&t->l);size_t i=lb(t,k,l);if(i<t->n&&kc(t->a[i]->key,t->a[i]->len,k,l)==0){uint64_t n=ch(arg,t->a[i]->v);r=MOT_TREE_OK;if(n)t->a[i]->v=n;else del(t,ctx,i);}mot_spin_unlock(&t->l);return r;}
size_t mot_tree_cursor_size(void){return sizeof(mot_tree_cursor);}
bool mot_tree_cursor_open(mot_tree_cursor*c,const mot_tree*t,const mot_bound*lo,const mot_bound*hi,bool back,const mot_observer*o){(void)o;c->tree=t;c->back=back;c->started=false;c->lo.kind=c->hi.kind=MOT_BOUND_NONE;if(lo&&lo->kind){c->lo=*lo;memcpy(c->lob,lo->key,lo->len);c->lo.key=c->lob;}if(hi&&hi->kind){c->hi=*hi;memcpy(c->hib,hi->key,hi->len);c->hi.key=c->hib;}return true;}
static int pc(const ent*e,const mot_bound*b){size_t l=e->len<b->len?e->len:b->len;return kc(e->key,l,b->key,b->len);}
static bool inlo(const ent*e,const mot_bound*b){if(!b->kind)return true;int r=pc(e,b);return r>0||(r==0&&b->kind==MOT_BOUND_INCLUSIVE);}
static bool inhi(const ent*e,const mot_bound*b){if(!b->kind)return true;int r=pc(e,b);return r<0||(r==0&&b->kind==MOT_BOUND_INCLUSIVE);}
uint64_t mot_tree_cursor_next(mot_tree_cursor*c,const void**k,size_t*l){mot_tree*t=(mot_tree*)c->tree;uint64_t v=0;mot_spin_lock(&t->l);
 if(!c->back){size_t i;if(!c->started){size_t lo=0,hi=t->n;while(lo<hi){size_t m=(lo+hi)/2;if(!inlo(t->a[m],&c->lo))lo=m+1;else hi=m;}i=lo;}else{i=lb(t,c->key,c->klen);if(i<t->n&&kc(t->a[i]->key,t->a[i]->len,c->key,c->klen)==0)i++;}
  if(i<t->n&&inhi(t->a[i],&c->hi)){v=t->a[i]->v;c->klen=t->a[i]->len;memcpy(c->key,t->a[i]->key,c->klen);}}
 else{size_t i;if(!c->started){size_t lo=0,hi=t->n;while(lo<hi){size_t m=(lo+hi)/2;if(inhi(t->a[m],&c->hi))lo=m+1;else hi=m;}i=lo;}else i=lb(t,c->key,c->klen);
  if(i>0&&inlo(t->a[i-1],&c->lo)){i--;v=t->a[i]->v;c->klen=t->a[i]->len;memcpy(c->key,t->a[i]->key,c->klen);}}
 c->started=true;mot_spin_unlock(&t->l);if(k)*k=c->key;if(l)*l=c->klen;return v;}
void mot_tree_cursor_close(mot_tree_cursor*c){(void)c;}
void mot_tree_stats(const mot_tree*t,mot_tree_stat*s){memset(s,0,sizeof*s);s->keys=t->n;}
bool mot_tree_check(const mot_tree*t,char*e,size_t n){(void)t;(void)e;(void)n;return true;}
#endif
