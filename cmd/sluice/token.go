package main

import (
	"bufio"
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/golang-jwt/jwt/v5"

	"sluice/server"
	"sluice/words"
)

// maxUserBytes is the longest user id that the contract allows.
const maxUserBytes = 128

// secretFlags are how a command is given the secrets that user tokens are signed with.
type secretFlags struct {
	Secret     []string `placeholder:"SECRET" help:"Secrets of user tokens, separated by commas; the first one signs."`
	SecretFile string   `placeholder:"FILE" help:"File with the secrets, separated by commas or lines."`
}

// secrets returns all secrets, the signing one first; none when neither flag was given.
func (f secretFlags) secrets() ([][]byte, error) {
	given, err := valueOrFile("secret", strings.Join(f.Secret, ","), f.SecretFile)
	if err != nil {
		return nil, err
	}
	secrets := splitSecrets(given)
	if f.SecretFile != "" && len(secrets) == 0 {
		return nil, fmt.Errorf("read --secret-file: %s holds no secret", f.SecretFile)
	}
	return secrets, nil
}

// splitSecrets are the secrets of a list with commas or lines between them.
func splitSecrets(list string) [][]byte {
	var secrets [][]byte
	for secret := range strings.FieldsFuncSeq(list, func(r rune) bool { return r == ',' || r == '\n' || r == '\r' }) {
		if secret = strings.TrimSpace(secret); secret != "" {
			secrets = append(secrets, []byte(secret))
		}
	}
	return secrets
}

// claimFlags are what a server wants in the tokens of users beside the user.
type claimFlags struct {
	JWTIssuer   string   `name:"jwt-issuer" placeholder:"ISSUER" help:"What iss must be in the tokens of users, to the letter; without it any is taken."`
	JWTAudience []string `name:"jwt-audience" placeholder:"AUDIENCE" help:"Of which aud must have one in the tokens of users; without it tokens for other services are taken too."`
}

// mint signs a JWT that fulfils them.
func (f claimFlags) mint(secret []byte, user string, expires time.Time) (string, error) {
	return server.MintClaims(secret, jwt.RegisteredClaims{Subject: user, Issuer: f.JWTIssuer, Audience: f.JWTAudience}, expires)
}

// tokenCmd is `sluice token`.
type tokenCmd struct {
	secretFlags
	claimFlags
	User  string        `required:"" placeholder:"ID" help:"The user that the token names; with --count the prefix of the users."`
	TTL   time.Duration `default:"24h" help:"How long the token holds."`
	Kind  string        `enum:"jwt,hmac" default:"jwt" help:"jwt, or hmac for the X-User-Id and X-Token headers."`
	Count int           `default:"0" help:"Print a line \"user token\" for each of the users ID-1 to ID-N."`
}

// Help is shown below the flags of `sluice token --help`.
func (*tokenCmd) Help() string {
	return `Example:

    sluice token --user alice --secret "$SLUICE_SECRET" --ttl 1h
    sluice token --user load --count 1000 --kind hmac --secret-file secret.txt > tokens.txt`
}

// Run prints the tokens.
func (c *tokenCmd) Run(_ context.Context, std *stdio) error {
	secrets, err := c.secrets()
	if err != nil {
		return err
	}
	if len(secrets) == 0 {
		return usagef("a token needs the server's secret: give --secret or --secret-file")
	}
	if c.TTL <= 0 {
		return usagef("--ttl %s: a token must hold for some time", words.Duration(c.TTL))
	}
	if c.Count < 0 {
		return usagef("--count %d: give a number from 1", c.Count)
	}
	longest := c.User
	if c.Count > 0 {
		longest = memberOf(c.User, c.Count)
	}
	if err := checkUser(longest); err != nil {
		return err
	}

	expires := time.Now().Add(c.TTL)
	out := bufio.NewWriter(std.out)
	if c.Count == 0 {
		token, err := c.mint(secrets[0], c.User, expires)
		if err != nil {
			return err
		}
		fmt.Fprintln(out, token)
		return flush(out)
	}
	for n := 1; n <= c.Count; n++ {
		user := memberOf(c.User, n)
		token, err := c.mint(secrets[0], user, expires)
		if err != nil {
			return err
		}
		fmt.Fprintln(out, user, token)
	}
	return flush(out)
}

// mint makes one token of the kind asked for.
func (c *tokenCmd) mint(secret []byte, user string, expires time.Time) (string, error) {
	if c.Kind == "hmac" {
		return server.MintHMAC(secret, user, expires), nil
	}
	return c.claimFlags.mint(secret, user, expires)
}

// memberOf names the nth of a group of test users.
func memberOf(prefix string, n int) string { return prefix + "-" + strconv.Itoa(n) }

// checkUser says what is wrong with a user id, by the rule of the contract.
func checkUser(user string) error {
	switch {
	case user == "" || len(user) > maxUserBytes:
		return usagef("user id %q: it must have 1 to %d bytes", user, maxUserBytes)
	case !utf8.ValidString(user) || strings.ContainsFunc(user, unicode.IsControl):
		return usagef("user id %q: it must be UTF-8 without control characters", user)
	}
	return nil
}

// flush writes out what is buffered; every earlier error of the writer comes out here.
func flush(out *bufio.Writer) error {
	if err := out.Flush(); err != nil {
		return fmt.Errorf("write the result: %w", err)
	}
	return nil
}
