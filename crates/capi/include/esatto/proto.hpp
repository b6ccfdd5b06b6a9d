// Encoding of messages in C++17. See proto.h.

#ifndef ESATTO_PROTO_HPP_
#define ESATTO_PROTO_HPP_

#include <string_view>

#include "proto.h"

namespace esatto {

// A message that is encoded at its final place. It ends when it goes out of scope. While it is
// open, write nothing to its parent.
class Message {
 public:
  Message(Message& parent, uint32_t field) : message_(esatto_message_begin(&parent.message_, field)) {}
  ~Message() { esatto_message_end(&message_); }
  Message(const Message&) = delete;
  Message& operator=(const Message&) = delete;

  // Begins a message in this one. Keep the result in a variable: auto inner = message.nested(4);
  [[nodiscard]] Message nested(uint32_t field) { return Message(*this, field); }

  // Fields of the types uint32, uint64 and enumerations; int32 and int64; sint32 and sint64.
  Message& put_uint(uint32_t field, uint64_t value) { return esatto_put_uint(&message_, field, value), *this; }
  Message& put_int(uint32_t field, int64_t value) { return esatto_put_int(&message_, field, value), *this; }
  Message& put_sint(uint32_t field, int64_t value) { return esatto_put_sint(&message_, field, value), *this; }
  Message& put_bool(uint32_t field, bool value) { return esatto_put_bool(&message_, field, value), *this; }
  // Also of the types sfixed32 and sfixed64.
  Message& put_fixed32(uint32_t field, uint32_t value) { return esatto_put_fixed32(&message_, field, value), *this; }
  Message& put_fixed64(uint32_t field, uint64_t value) { return esatto_put_fixed64(&message_, field, value), *this; }
  Message& put_float(uint32_t field, float value) { return esatto_put_float(&message_, field, value), *this; }
  Message& put_double(uint32_t field, double value) { return esatto_put_double(&message_, field, value), *this; }
  // Fields of the types string and bytes.
  Message& put_string(uint32_t field, std::string_view text) { return esatto_put_bytes(&message_, field, text.data(), text.size()), *this; }
  Message& put_bytes(uint32_t field, const void* from, size_t size) { return esatto_put_bytes(&message_, field, from, size), *this; }

  // A packed field of varints.
  template <class Numbers>
  Message& put_packed(uint32_t field, const Numbers& numbers) {
    Message packed(*this, field);
    for (const auto& number : numbers) esatto_put_packed_uint(&packed.message_, static_cast<uint64_t>(number));
    return *this;
  }

  // The same message, for the functions of proto.h.
  esatto_message* raw() { return &message_; }

 protected:
  // The outermost message, whose length is not filled in here.
  Message() : message_{} {}
  esatto_message message_;
};

}  // namespace esatto

#endif  // ESATTO_PROTO_HPP_
