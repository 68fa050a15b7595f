#ifndef MOT_TREE_CURSOR_H
#define MOT_TREE_CURSOR_H
#include "tree.h"
struct mot_tree_cursor { const mot_tree *tree; mot_bound lo, hi; uint8_t lob[8200], hib[8200], key[8200]; size_t klen; bool started, back; };
#endif
