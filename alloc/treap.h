// SPDX-License-Identifier: Apache-2.0
// An intrusive search tree, balanced by priorities hashed from the nodes' addresses, so that adding
// and removing never needs memory. Used by HoleIndex; not shared between threads.
#pragma once

#include "record.h"

#include <cstddef>
#include <cstdint>

namespace ebb::inline v0::detail {

// Order gives: static TreeLinks& links(HeapRecord&); static bool less(const HeapRecord&, const
// HeapRecord&), a total order that does not change while a node is in the tree.
template <class Order>
class Treap {
 public:
  using Node = HeapRecord;

  bool empty() const noexcept { return root_ == nullptr; }
  // Whether node, which is in the tree, is alone in it.
  bool is_only(const Node& node) const noexcept {
    return root_ == &node && links(root_).left == nullptr && links(root_).right == nullptr;
  }

  void insert(Node& node) noexcept {
    Node* parent = nullptr;
    Node** link = &root_;
    const std::uint64_t mine = priority(node);
    while (*link != nullptr && priority(**link) >= mine) {
      parent = *link;
      link = Order::less(node, *parent) ? &links(parent).left : &links(parent).right;
    }
    Node* rest = *link;
    *link = &node;
    links(&node).parent = parent;
    split(rest, node);
  }

  void erase(Node& node) noexcept {
    Node* parent = links(&node).parent;
    Node** link = parent == nullptr             ? &root_
                  : links(parent).left == &node ? &links(parent).left
                                                : &links(parent).right;
    Node* left = links(&node).left;
    Node* right = links(&node).right;
    while (left != nullptr && right != nullptr) {
      Node*& top = priority(*left) >= priority(*right) ? left : right;
      Node* const chosen = top;
      *link = chosen;
      links(chosen).parent = parent;
      parent = chosen;
      link = chosen == left ? &links(chosen).right : &links(chosen).left;
      top = *link;
    }
    Node* rest = left != nullptr ? left : right;
    *link = rest;
    if (rest != nullptr) {
      links(rest).parent = parent;
    }
  }

  // The first node for which before(node) is false; before holds for a prefix of the order.
  template <class Before>
  Node* lower_bound(Before before) const noexcept {
    Node* found = nullptr;
    for (Node* node = root_; node != nullptr;) {
      if (before(*node)) {
        node = links(node).right;
      } else {
        found = node;
        node = links(node).left;
      }
    }
    return found;
  }
  // The last node for which upto(node) is true; upto holds for a prefix of the order.
  template <class Upto>
  Node* last_where(Upto upto) const noexcept {
    Node* found = nullptr;
    for (Node* node = root_; node != nullptr;) {
      if (upto(*node)) {
        found = node;
        node = links(node).right;
      } else {
        node = links(node).left;
      }
    }
    return found;
  }
  Node* first() const noexcept {
    return lower_bound([](const Node&) { return false; });
  }
  Node* last() const noexcept {
    return last_where([](const Node&) { return true; });
  }
  static Node* next(Node& node) noexcept {
    if (Node* down = links(&node).right) {
      while (links(down).left != nullptr) {
        down = links(down).left;
      }
      return down;
    }
    Node* child = &node;
    Node* up = links(child).parent;
    while (up != nullptr && links(up).right == child) {
      child = up;
      up = links(up).parent;
    }
    return up;
  }

  // Adds the number of nodes to count; false when order, priorities or parents are wrong.
  bool is_valid(std::size_t& count) const noexcept {
    const Node* before = nullptr;
    for (Node* node = first(); node != nullptr; node = next(*node)) {
      const Node* parent = links(node).parent;
      const bool hangs = parent == nullptr
                             ? root_ == node
                             : (links(parent).left == node) != (links(parent).right == node);
      const bool heap_ordered = parent == nullptr || priority(*parent) >= priority(*node);
      if (!hangs || !heap_ordered || (before != nullptr && !Order::less(*before, *node))) {
        return false;
      }
      before = node;
      ++count;
    }
    return true;
  }

 private:
  static TreeLinks& links(Node* node) noexcept { return Order::links(*node); }
  static const TreeLinks& links(const Node* node) noexcept {
    return Order::links(const_cast<Node&>(*node));
  }
  // Records are 128 bytes apart; the multiplication spreads their numbers.
  static std::uint64_t priority(const Node& node) noexcept {
    return (reinterpret_cast<std::uintptr_t>(&node) >> 7) * 0x9e3779b97f4a7c15u;
  }

  // Hangs the tree below rest under node, what is less on the left.
  void split(Node* rest, Node& node) noexcept {
    Node** left = &links(&node).left;
    Node** right = &links(&node).right;
    Node* left_parent = &node;
    Node* right_parent = &node;
    while (rest != nullptr) {
      if (Order::less(node, *rest)) {
        *right = rest;
        links(rest).parent = right_parent;
        right_parent = rest;
        right = &links(rest).left;
        rest = *right;
      } else {
        *left = rest;
        links(rest).parent = left_parent;
        left_parent = rest;
        left = &links(rest).right;
        rest = *left;
      }
    }
    *left = nullptr;
    *right = nullptr;
  }

  Node* root_ = nullptr;
};

}  // namespace ebb::inline v0::detail
