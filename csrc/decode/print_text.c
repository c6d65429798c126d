/* Numbers, bytes and addresses as text: what lib/vsprintf.c makes of them. */
#include "print_text.h"

static const char LOWER[] = "0123456789abcdef", UPPER[] = "0123456789ABCDEF";

/* Write the digits of a number so that they end before `end`; return where they begin. */
static char *digits_before(char *end, uint64_t value, char letter)
{
	const char *digits = letter == 'X' ? UPPER : LOWER;

	switch (letter) {
	case 'x':
	case 'X':
	case 'p':
		do
			*--end = digits[value & 15];
		while (value >>= 4);
		return end;
	case 'o':
		do
			*--end = digits[value & 7];
		while (value >>= 3);
		return end;
	default:
		do
			*--end = (char)('0' + value % 10);
		while (value /= 10);
		return end;
	}
}

bool line_digits(struct line *line, uint64_t value, char letter)
{
	char held[24], *end = held + sizeof(held), *at;

	if (line_room(line, sizeof(held)) && letter != 'o' && letter != 'X') {
		line->at = letter == 'x' || letter == 'p' ? tp_put_hex(line->at, value) : tp_put_decimal(line->at, value);
		return true;
	}
	at = digits_before(end, value, letter);
	return line_add(line, at, (size_t)(end - at));
}

/* The sign and the prefix of a number. */
static size_t head_of(char *head, bool is_negative, bool is_zero, char letter, unsigned int flags)
{
	size_t n = 0;

	if (letter == 'd' || letter == 'i') {
		if (is_negative)
			head[n++] = '-';
		else if (flags & (TP_PR_PLUS | TP_PR_SPACE))
			head[n++] = flags & TP_PR_PLUS ? '+' : ' ';
	}
	if (!(flags & TP_PR_HASH))
		return n;
	if (letter == 'o' && !is_zero)
		head[n++] = '0';
	if (letter == 'x' || letter == 'X' || letter == 'p') {
		head[n++] = '0';
		head[n++] = letter == 'X' ? 'X' : 'x';
	}
	return n;
}

bool line_number(struct line *line, uint64_t value, char letter, unsigned int flags, int64_t width, int64_t precision)
{
	bool is_negative = (letter == 'd' || letter == 'i') && (int64_t)value < 0;
	char held[24], head[4], *end = held + sizeof(held);
	char *at = digits_before(end, is_negative ? 0 - value : value, letter);
	size_t n_digits = (size_t)(end - at), n_head = head_of(head, is_negative, !value, letter, flags);
	int64_t zeros = precision > (int64_t)n_digits ? precision - (int64_t)n_digits : 0;

	if (width < -1) {
		flags |= TP_PR_LEFT;
		width = -width;
	}
	int64_t gap = width - (int64_t)n_head - zeros - (int64_t)n_digits;

	if (gap < 0)
		gap = 0;
	if (gap > TP_PRINT_MOST || zeros > TP_PRINT_MOST)
		return false;
	if (!(flags & (TP_PR_LEFT | TP_PR_ZERO)) && !line_fill(line, ' ', (size_t)gap))
		return false;
	if (!line_add(line, head, n_head))
		return false;
	if (flags & TP_PR_ZERO && !(flags & TP_PR_LEFT) && !line_fill(line, '0', (size_t)gap))
		return false;
	if (!line_fill(line, '0', (size_t)zeros) || !line_add(line, at, n_digits))
		return false;
	return !(flags & TP_PR_LEFT) || line_fill(line, ' ', (size_t)gap);
}

bool line_pad(struct line *line, size_t mark, unsigned int flags, int64_t width, int64_t precision)
{
	size_t size = (size_t)(line->at - line->start) - mark;

	if (width < -1) {
		flags |= TP_PR_LEFT;
		width = -width;
	}
	if (precision >= 0 && (uint64_t)precision < size) {
		size = (size_t)precision;
		line->at = line->start + mark + size;
	}
	if (width <= (int64_t)size)
		return true;
	if (width > TP_PRINT_MOST)
		return false;
	size_t gap = (size_t)width - size;

	if (!line_fill(line, ' ', gap))
		return false;
	if (!(flags & TP_PR_LEFT)) {
		memmove(line->start + mark + gap, line->start + mark, size);
		memset(line->start + mark, ' ', gap);
	}
	return true;
}

bool line_hex(struct line *line, const unsigned char *data, size_t size, char separator, unsigned int group)
{
	if (size > TP_PRINT_MOST || !line_room(line, 3 * size))
		return false;
	char *at = line->at;

	for (size_t i = 0; i < size; i++) {
		if (separator && i && (!group || i % group))
			*at++ = separator;
		*at++ = LOWER[data[i] >> 4];
		*at++ = LOWER[data[i] & 15];
	}
	line->at = at;
	return true;
}

bool line_numbers(struct line *line, const unsigned char *data, uint64_t n, unsigned int size, bool is_big)
{
	if (!line_add(line, "{", 1))
		return false;
	for (uint64_t i = 0; i < n; i++) {
		uint64_t value = 0;

		for (unsigned int j = 0; j < size; j++)
			value |= (uint64_t)data[i * size + (is_big ? size - 1 - j : j)] << 8 * j;
		if (!line_add(line, ",0x", i ? 3 : 0) || (!i && !line_add(line, "0x", 2)) || !line_digits(line, value, 'x'))
			return false;
	}
	return line_add(line, "}", 1);
}

/* The byte of a bitmap that holds bits 8 * index to 8 * index + 7: longs of `long_size` bytes, the last may be cut. */
static unsigned int bitmap_byte(const unsigned char *data, uint64_t size, uint64_t index, unsigned int long_size,
				bool is_big)
{
	uint64_t word = index / long_size * long_size, left = size > word ? size - word : 0, in_word = index % long_size;

	if (left > long_size)
		left = long_size;
	if (in_word >= left)
		return 0;
	return data[word + (is_big ? left - 1 - in_word : in_word)];
}

static bool bitmap_ranges(struct line *line, const unsigned char *data, uint64_t size, uint64_t n_bits,
			  unsigned int long_size, bool is_big)
{
	bool is_first = true;

	for (uint64_t bit = 0; bit < n_bits; bit++) {
		uint64_t low = bit;

		while (bit < n_bits && bitmap_byte(data, size, bit / 8, long_size, is_big) >> bit % 8 & 1)
			bit++;
		if (bit == low)
			continue;
		if ((!is_first && !line_add(line, ",", 1)) || !line_digits(line, low, 'd'))
			return false;
		if (bit > low + 1 && (!line_add(line, "-", 1) || !line_digits(line, bit - 1, 'd')))
			return false;
		is_first = false;
	}
	return true;
}

bool line_bitmap(struct line *line, const unsigned char *data, uint64_t size, uint64_t n_bits, bool is_list,
		 unsigned int long_size, bool is_big)
{
	if (is_list)
		return bitmap_ranges(line, data, size, n_bits, long_size, is_big);
	for (uint64_t group = (n_bits + 31) / 32; group-- > 0;) {
		unsigned int width = n_bits - 32 * group < 32 ? (unsigned int)(n_bits - 32 * group) : 32;
		uint64_t value = 0;

		for (unsigned int i = 0; i < 4; i++)
			value |= (uint64_t)bitmap_byte(data, size, 4 * group + i, long_size, is_big) << 8 * i;
		value &= (UINT64_C(1) << width) - 1;
		if (!line_number(line, value, 'x', TP_PR_ZERO, (width + 3) / 4, -1) || (group && !line_add(line, ",", 1)))
			return false;
	}
	return true;
}

bool line_ip4(struct line *line, const unsigned char *data, unsigned int how)
{
	for (unsigned int i = 0; i < 4; i++)
		if ((i && !line_add(line, ".", 1)) ||
		    !line_number(line, data[how & 2 ? 3 - i : i], 'd', TP_PR_ZERO, how & 1 ? 3 : -1, -1))
			return false;
	return true;
}

/* Find the longest run of two zeros or more; the first of several as long. */
static unsigned int longest_zeros(const unsigned int *words, unsigned int n, unsigned int *start)
{
	unsigned int longest = 1;

	for (unsigned int from = 0; from < n; from++) {
		unsigned int length = 0;

		while (from + length < n && !words[from + length])
			length++;
		if (length > longest) {
			*start = from;
			longest = length;
		}
	}
	return longest;
}

static bool ip6_short(struct line *line, const unsigned char *data)
{
	unsigned int words[8], n = 8, start = 0, length;

	for (unsigned int i = 0; i < 8; i++)
		words[i] = (unsigned int)data[2 * i] << 8 | data[2 * i + 1];
	bool is_mapped = !(words[0] | words[1] | words[2] | words[3] | words[4]) && words[5] == 0xffff;

	if (is_mapped || ((words[4] | 0x0200) == 0x0200 && words[5] == 0x5efe))
		n = 6;
	length = longest_zeros(words, n, &start);
	for (unsigned int i = 0; i < n; i++) {
		if (length > 1 && i == start) {
			if (!line_add(line, "::", 2))
				return false;
			i += length - 1;
			continue;
		}
		bool is_after_run = length > 1 && i == start + length;

		if ((i && !is_after_run && !line_add(line, ":", 1)) || !line_digits(line, words[i], 'x'))
			return false;
	}
	if (n == 8)
		return true;
	bool ends_with_run = length > 1 && start + length == n;

	return (ends_with_run || line_add(line, ":", 1)) && line_ip4(line, data + 12, 0);
}

bool line_ip6(struct line *line, const unsigned char *data, unsigned int how)
{
	if (how & 2)
		return ip6_short(line, data);
	for (unsigned int i = 0; i < 16; i += 2)
		if ((i && how & 1 && !line_add(line, ":", 1)) || !line_hex(line, data + i, 2, 0, 0))
			return false;
	return true;
}

bool line_mac(struct line *line, const unsigned char *data, unsigned int how)
{
	unsigned char reversed[6];

	for (unsigned int i = 0; i < 6; i++)
		reversed[i] = data[5 - i];
	return line_hex(line, how & 256 ? reversed : data, 6, (char)(how & 255), 0);
}

bool line_uuid(struct line *line, const unsigned char *data, unsigned int how)
{
	static const unsigned char order[2][16] = {
		{ 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15 },
		{ 3, 2, 1, 0, 5, 4, 7, 6, 8, 9, 10, 11, 12, 13, 14, 15 },
	};
	const char *digits = how & 2 ? UPPER : LOWER;
	char text[36];

	for (unsigned int i = 0, at = 0; i < 16; i++) {
		unsigned char byte = data[order[how & 1][i]];

		if (i == 4 || i == 6 || i == 8 || i == 10)
			text[at++] = '-';
		text[at++] = digits[byte >> 4];
		text[at++] = digits[byte & 15];
	}
	return line_add(line, text, sizeof(text));
}
