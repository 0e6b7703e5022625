package deploykey_test

import (
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/forgeplane/forgeplane/api/v1alpha1"
	"github.com/forgeplane/forgeplane/test/forge"
)

// Keys that ssh-keygen generated, and the output of "ssh-keygen -l" and "ssh-keygen -l -E md5" for them.
const (
	ed25519Key    = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAILOdCNABzVZsZ/vmUHeA/Ecx2WiPr1u4ycMrJxFOxtXC"
	ed25519SHA256 = "SHA256:j4JMXf2b5H5f9Z7yi/XWIxmZIBDpSgp3MARNieicedI"
	ed25519MD5    = "9a:c8:93:a5:34:d2:22:6e:ab:5f:6e:48:99:36:c2:01"

	rsaKey    = "ssh-rsa AAAAB3NzaC1yc2EAAAADAQABAAABgQDXk4X3I7hXuBDtUZV40FPnvd6/Igs1fsr+rglVeYqzEMBJK6r5tishJqD5rz1AcOpagwZg9F8tFQt8J8IAOb9yj9FRjGszWjUbWWJPIB5TF0YbKuMhyHrIkirG7/ffmjctL7CKoo+qHJg0dgHjGOb08R3u5sBDWaFadB9iU71wrVrvOThoQUJ7UNygaBE1BT5NMKS5HfYW5F3sBpEyvhCKaExgqZ2K1GYK9PqzPsB6SmjAqcJr288REJuZ2CA5XUWa5BhaBKG8Zh4ALaLoKFTzhrlJOb/NvadgnlhMlkYtiyv8JXHs3WD2VWJ4qauAw1YP5EkES9Ugy+bWHBUZSsy7BEaI2OU8ndMwr1p+sDWc5XTMaRvWwGKanJcr38iZcfSneFlwx1IdxGtG8inY2FHOvWvwSrmzLS1dZ9aCV3WIGFxC/dowsy1bHBsDvrsQLBOzTuoCFAfpqAc301weQNE4qqwExsSphA2Xej0ey5cHxIR5CWVvAF6yLFlSw/um2MM="
	rsaSHA256 = "SHA256:zHNVWGqgxU8eUd240JNewpFE8o9sr+n9MV3CYgcqwDo"
	rsaMD5    = "ab:5d:8e:54:49:c7:79:ee:87:36:3b:d7:06:36:92:4e"

	ecdsaKey    = "ecdsa-sha2-nistp256 AAAAE2VjZHNhLXNoYTItbmlzdHAyNTYAAAAIbmlzdHAyNTYAAABBBFEt/YeXUXrkZT5RxJTuN2RxJ2BwWn64frHTUVsnEJ3ld7fZDsvmmUaXHWvc/7fRuWlt97k5MK5FdFuv4isRhmk="
	ecdsaSHA256 = "SHA256:BhBFtyPHmwEeZsCxA5BOift6AlJyfaK/8T0OR892wy0"
	ecdsaMD5    = "91:59:84:49:46:22:fd:5a:2f:23:4e:3c:44:d4:e2:17"

	// certificate is a certificate of ed25519Key.
	certificate = "ssh-ed25519-cert-v01@openssh.com AAAAIHNzaC1lZDI1NTE5LWNlcnQtdjAxQG9wZW5zc2guY29tAAAAIGjAE7VQ+WRgCMpwNAGaB4thel4yuVvxcNaySqSw9WbxAAAAILOdCNABzVZsZ/vmUHeA/Ecx2WiPr1u4ycMrJxFOxtXCAAAAAAAAAAAAAAABAAAAAmlkAAAACAAAAARob3N0AAAAAAAAAAD//////////wAAAAAAAACCAAAAFXBlcm1pdC1YMTEtZm9yd2FyZGluZwAAAAAAAAAXcGVybWl0LWFnZW50LWZvcndhcmRpbmcAAAAAAAAAFnBlcm1pdC1wb3J0LWZvcndhcmRpbmcAAAAAAAAACnBlcm1pdC1wdHkAAAAAAAAADnBlcm1pdC11c2VyLXJjAAAAAAAAAAAAAAGXAAAAB3NzaC1yc2EAAAADAQABAAABgQDXk4X3I7hXuBDtUZV40FPnvd6/Igs1fsr+rglVeYqzEMBJK6r5tishJqD5rz1AcOpagwZg9F8tFQt8J8IAOb9yj9FRjGszWjUbWWJPIB5TF0YbKuMhyHrIkirG7/ffmjctL7CKoo+qHJg0dgHjGOb08R3u5sBDWaFadB9iU71wrVrvOThoQUJ7UNygaBE1BT5NMKS5HfYW5F3sBpEyvhCKaExgqZ2K1GYK9PqzPsB6SmjAqcJr288REJuZ2CA5XUWa5BhaBKG8Zh4ALaLoKFTzhrlJOb/NvadgnlhMlkYtiyv8JXHs3WD2VWJ4qauAw1YP5EkES9Ugy+bWHBUZSsy7BEaI2OU8ndMwr1p+sDWc5XTMaRvWwGKanJcr38iZcfSneFlwx1IdxGtG8inY2FHOvWvwSrmzLS1dZ9aCV3WIGFxC/dowsy1bHBsDvrsQLBOzTuoCFAfpqAc301weQNE4qqwExsSphA2Xej0ey5cHxIR5CWVvAF6yLFlSw/um2MMAAAGUAAAADHJzYS1zaGEyLTUxMgAAAYA3XLjZL+lIKy0ANYE/TVrCuay8p7uVmKDn88JTvO1odaWFJQpg2woP0qGHwht5QG7+0nRykg0oQ2eIDy4VnhxMX7nEC9YpflEFTPiemRfSqS2xaP+U89qNQZFT03OFPWmjRwDaZXSyyXsQarNXQwJ/C4QuHU6bINOzm3TnNCUpPIujJOQOYmWBHtjnXqTBa7wJUHQkNGAMpoZUeaO6S6qpSPf3eJEqXYbQKClj/yRQDb88syLFqSleCydiAeZNuYb8F8unWHvcnl63/TtFi8qUQKoTO3/+HKY0vuUnNb9mwPMHSCv5WlapVGACS9KvWI1z8uIUEGHuN1I1KEmCkI8zUlwzYtzHBAKfvHDjwwdLOlo+vS2Udd90Jkcw+LyH172qEQeoY32PLw5ymxh1cLkPTfJVyO4NkZlMLGeZ9JiARRUrRr2U+bb0Jem23DADlqSEMqCsYd1WB++Ugz4qCZbXZUI7/Sv5b2xVMXJPxpE6XPAEFI/JuY3ZdLnd7/3gjEs="
)

var _ = Describe("A deploy key", func() {
	keys := map[string]string{} // by the name of the object, which is immutable
	forge.DescribeIDs(func() *forge.Forge { return f }, func(name string) v1alpha1.Identified {
		if keys[name] == "" {
			keys[name] = forge.NewPublicKey()
		}
		return forge.DeployKey(name).Of(website).PublicKey(keys[name]).Build()
	})

	It("becomes ready, and is read-only", func() {
		key := forge.DeployKey("ci").Of(website).Build()
		f.Create(key)
		f.ExpectReady(key)
		Expect(key.Spec.Access).To(Equal(v1alpha1.DeployKeyReadOnly))
	})

	DescribeTable("shows the fingerprints that ssh-keygen prints",
		func(line, sha256, md5 string) {
			key := forge.DeployKey("ci").Of(website).PublicKey(line).Build()
			f.Create(key)
			f.ExpectReady(key)
			Expect(key.Status.FingerprintSHA256).To(Equal(sha256))
			Expect(key.Status.FingerprintMD5).To(Equal(md5))
		},
		Entry("for an Ed25519 key", ed25519Key, ed25519SHA256, ed25519MD5),
		Entry("for an RSA key", rsaKey, rsaSHA256, rsaMD5),
		Entry("for an ECDSA key", ecdsaKey, ecdsaSHA256, ecdsaMD5),
		Entry("for a key with a comment and a line end", ed25519Key+" somebody@example.com and more\n", ed25519SHA256, ed25519MD5),
	)

	DescribeTable("is invalid unless it is exactly one key",
		func(line string, words string) {
			key := forge.DeployKey("ci").Of(website).PublicKey(line).Build()
			f.Create(key)
			f.ExpectStalled(key, v1alpha1.ReasonInvalid, "publicKey must be a key in the format of a line of authorized_keys", words)
			Expect(key.Status.FingerprintSHA256).To(BeEmpty())
			Expect(key.Status.FingerprintMD5).To(BeEmpty())
		},
		Entry("not a key", "this is no key, whatever one does", "no key found"),
		Entry("a truncated key", ed25519Key[:40], "no key found"),
		Entry("two keys", ed25519Key+"\n"+rsaKey, "more than one line"),
		Entry("a key with a comment line", "# the key of the builder\n"+ed25519Key, "more than one line"),
		Entry("a key with options, which would have no effect", `from="10.0.0.0/8",no-pty `+ed25519Key, "options"),
		Entry("a certificate", certificate, "certificate"),
	)

	It("is refused with a private key, and the message does not repeat the key", func() {
		key := forge.DeployKey("ci").Of(website).PublicKey("-----BEGIN OPENSSH PRIVATE KEY-----\nc2VjcmV0\n-----END OPENSSH PRIVATE KEY-----\n").Build()
		f.ExpectRefused(key, "publicKey holds a private key", "consider it lost")
	})

	It("cannot change its key", func() {
		key := forge.DeployKey("ci").Of(website).Build()
		f.Create(key)
		f.ExpectChangeRefused(key, func() { key.Spec.PublicKey = ed25519Key }, "publicKey cannot change: make a new key")
		f.Change(key, func() { key.Spec.Title, key.Spec.Access = "Builder", v1alpha1.DeployKeyReadWrite })
		f.ExpectReady(key)
	})
})

var _ = Describe("A deploy key:", func() {
	forge.DescribeTarget("a deploy key", forge.Projects, func() *forge.Forge { return f },
		func(name string, project, _ *v1alpha1.Reference) v1alpha1.Targeted {
			key := forge.DeployKey(name).Build()
			key.Spec.ProjectRef = *project
			return key
		})

	It("shows its fingerprint while its project is not found", func() {
		key := forge.DeployKey("ci").Of(website).Build()
		key.Namespace = f.NewNamespace()
		f.Create(key)
		f.ExpectWaiting(key, v1alpha1.ReasonReferenceNotFound)
		Expect(key.Status.FingerprintSHA256).NotTo(BeEmpty())
	})
})

var _ = Describe("A key that a project already has", func() {
	It("belongs to the older deploy key, whatever its comment, and passes on when that is deleted", func() {
		f.Run()
		one := forge.DeployKey("one").Of(website).PublicKey(ed25519Key + " one@example.com").Build()
		two := forge.DeployKey("two").Of(website).PublicKey(ed25519Key + " two@example.com").Build()
		two.Spec.ProjectRef = v1alpha1.Reference{Path: "acme/website"}
		older, younger := forge.CreateInTurn(f, one, two)
		f.ExpectReady(older)
		f.ExpectStalled(younger, v1alpha1.ReasonAlreadyExists, "the key "+ed25519SHA256, "held by DeployKey "+older.Name)
		f.ExpectRestartWritesNothing()
		f.Delete(older)
		f.ExpectReady(younger)
	})

	It("can also belong to another project", func() {
		other := forge.Project("other").In(acme).Build()
		one := forge.DeployKey("one").Of(website).PublicKey(ed25519Key).Build()
		two := forge.DeployKey("two").Of(other).PublicKey(ed25519Key).Build()
		f.Create(other, one, two)
		f.ExpectReady(one, two)
	})

	It("is not claimed by an invalid deploy key", func() {
		bad := forge.DeployKey("bad").Of(website).PublicKey("no-pty " + ed25519Key).Build()
		good := forge.DeployKey("good").Of(website).PublicKey(ed25519Key).Build()
		f.Create(bad, good)
		f.ExpectStalled(bad, v1alpha1.ReasonInvalid)
		f.ExpectReady(good)
	})
})
